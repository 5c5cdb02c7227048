/** What the command line writes to: results on stdout, progress and problems on stderr. */

/** Two streams, and what is known of them. */
export interface Terminal {
  /** Writes to stdout. */
  out(text: string): void;
  /** Writes to stderr. */
  error(text: string): void;
  /** Width to write for. */
  readonly columns: number;
  /** stderr is a screen: a progress line may be drawn over itself. */
  readonly live: boolean;
  /** stdout is a screen that shows bold and dim. */
  readonly styled: boolean;
}

/** The terminal of this process; 80 columns where stdout is no screen. */
export function processTerminal(process: NodeJS.Process): Terminal {
  const { stdout, stderr, env } = process;
  const screen = stdout.isTTY && env["TERM"] !== "dumb";
  return {
    out: (text) => void stdout.write(text),
    error: (text) => void stderr.write(text),
    get columns() {
      return stdout.isTTY ? stdout.columns : 80;
    },
    live: stderr.isTTY && env["TERM"] !== "dumb",
    styled: screen && (env["NO_COLOR"] ?? "") === "",
  };
}

/** Bold, where the terminal shows it. */
export function bold(terminal: Terminal, text: string): string {
  return terminal.styled ? `\u001b[1m${text}\u001b[22m` : text;
}

/** Dim, where the terminal shows it. */
export function dim(terminal: Terminal, text: string): string {
  return terminal.styled ? `\u001b[2m${text}\u001b[22m` : text;
}
