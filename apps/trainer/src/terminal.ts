/** What the command line writes to: results on stdout, progress and problems on stderr. */

/** Two streams, and what is known of them. */
export interface Terminal {
  /** Writes to stdout. */
  out(text: string): void;
  /** Writes to stderr. */
  error(text: string): void;
  /** Width to write for on stdout. */
  readonly columns: number;
  /** Width of stderr, where a progress line is drawn. */
  readonly liveColumns: number;
  /** stderr is a screen: a progress line may be drawn over itself. */
  readonly live: boolean;
  /** stdout is a screen that shows bold and dim. */
  readonly styled: boolean;
}

/** Columns of what is no screen, or of a screen that does not know its own (a container's says 0). */
const usualColumns = 80;

/** The terminal of this process. */
export function processTerminal(process: NodeJS.Process): Terminal {
  const { stdout, stderr, env } = process;
  const screen = stdout.isTTY && env["TERM"] !== "dumb";
  return {
    out: (text) => void stdout.write(text),
    error: (text) => void stderr.write(text),
    get columns() {
      return columnsOf(stdout);
    },
    get liveColumns() {
      return columnsOf(stderr);
    },
    live: stderr.isTTY && env["TERM"] !== "dumb",
    styled: screen && (env["NO_COLOR"] ?? "") === "",
  };
}

function columnsOf(stream: NodeJS.WriteStream): number {
  return (stream.isTTY && stream.columns) || usualColumns;
}

/** Bold, where the terminal shows it. */
export function bold(terminal: Terminal, text: string): string {
  return terminal.styled ? `\u001b[1m${text}\u001b[22m` : text;
}

/** Dim, where the terminal shows it. */
export function dim(terminal: Terminal, text: string): string {
  return terminal.styled ? `\u001b[2m${text}\u001b[22m` : text;
}
