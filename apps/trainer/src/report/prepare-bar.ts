/** Progress of `trireme prepare` on stderr: a bar on a screen, elsewhere a line from time to time. */
import { Writable } from "node:stream";
import { type Bytes, type Seconds, formatCount, formatPercent } from "@trireme/core";
import { SingleBar } from "cli-progress";
import type { Terminal } from "../terminal.ts";

/** Least time between plain lines. */
const plainEvery: Seconds = 5;

/** Shows which share of the texts' bytes was read. */
export class PrepareBar {
  readonly #terminal: Terminal;
  readonly #bytes: Bytes;
  readonly #now: () => Seconds;
  readonly #bar: SingleBar | undefined;
  #last: Seconds;

  constructor(terminal: Terminal, bytes: Bytes, now: () => Seconds) {
    this.#terminal = terminal;
    this.#bytes = bytes;
    this.#now = now;
    this.#last = now();
    if (!terminal.live) return;
    const stream = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        terminal.error(chunk.toString());
        done();
      },
    });
    this.#bar = new SingleBar({
      // Its own stream: it writes where the terminal does.
      stream: Object.assign(stream, { isTTY: true, columns: terminal.liveColumns }),
      format: "{bar} {percentage} %  {tokens} tokens  eta {eta_formatted}",
      barCompleteChar: "━",
      barIncompleteChar: "─",
      barsize: 24,
      hideCursor: null,
      clearOnComplete: true,
      noTTYOutput: true,
    });
    this.#bar.start(bytes, 0, { tokens: "0" });
  }

  /** So many bytes read, and tokens made of them. */
  show(read: Bytes, tokens: number): void {
    if (this.#bar !== undefined) {
      this.#bar.update(Math.min(read, this.#bytes), { tokens: formatCount(tokens) });
      return;
    }
    if (this.#now() - this.#last < plainEvery) return;
    this.#last = this.#now();
    const share = this.#bytes === 0 ? 1 : Math.min(1, read / this.#bytes);
    this.#terminal.error(`${formatPercent(share)}  ${formatCount(tokens)} tokens\n`);
  }

  /** Takes the bar away. */
  end(): void {
    this.#bar?.stop();
  }
}
