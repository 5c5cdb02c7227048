/** Gathers workers' lines for a moment and hands them on together; counts what could not be sent. */
import type { Seconds } from "@trireme/core";
import type { Clock } from "./clock.ts";

/** Takes lines; false where it cannot now. */
export type SendLines = (
  rank: number,
  stream: "stdout" | "stderr",
  lines: readonly string[],
  dropped: number,
) => boolean;

interface Gathered {
  readonly rank: number;
  readonly stream: "stdout" | "stderr";
  lines: string[];
  bytes: number;
  dropped: number;
}

/** How long lines are gathered. */
const moment: Seconds = 0.05;
/** Well within the limits of a message (4096 lines, 1 MiB), whatever JSON makes of the characters. */
const mostLines = 2048;
const mostBytes = 1 << 17;

export class LogForwarder {
  readonly #clock: Clock;
  readonly #send: SendLines;
  readonly #gathered = new Map<string, Gathered>();
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, send: SendLines) {
    this.#clock = clock;
    this.#send = send;
  }

  add(rank: number, stream: "stdout" | "stderr", line: string): void {
    const key = `${rank} ${stream}`;
    let gathered = this.#gathered.get(key);
    if (gathered === undefined) {
      gathered = { rank, stream, lines: [], bytes: 0, dropped: 0 };
      this.#gathered.set(key, gathered);
    }
    gathered.lines.push(line);
    gathered.bytes += line.length;
    if (gathered.lines.length >= mostLines || gathered.bytes >= mostBytes) this.#hand(gathered);
    this.#cancel ??= this.#clock.after(moment, () => this.flush());
  }

  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    for (const gathered of this.#gathered.values()) {
      if (gathered.lines.length > 0) this.#hand(gathered);
    }
  }

  #hand(gathered: Gathered): void {
    const { rank, stream, lines, dropped } = gathered;
    const sent = this.#send(rank, stream, lines, dropped);
    gathered.dropped = sent ? 0 : dropped + lines.length;
    gathered.lines = [];
    gathered.bytes = 0;
  }
}
