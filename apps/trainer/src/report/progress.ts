/**
 * Progress of a run on stderr: on a screen one line that is drawn over itself, elsewhere a plain
 * line from time to time.
 */
import { type Seconds, formatCount, formatSeconds } from "@trireme/core";
import type { RunEvent } from "@trireme/runtime";
import type { Terminal } from "../terminal.ts";

/** Least time between plain lines. */
const plainEvery: Seconds = 5;
/** Weight of the newest step in the running mean of the pace. */
const newest = 0.1;

export class Progress {
  readonly #terminal: Terminal;
  readonly #now: () => Seconds;
  #steps = 0;
  #from = 0;
  #lastTime = 0;
  #lastPlain = -Infinity;
  #pace: Seconds | undefined;
  #validation: number | undefined;
  #drawn = false;

  /** @param now A clock; the pace counts what passes between steps too. */
  constructor(terminal: Terminal, now: () => Seconds) {
    this.#terminal = terminal;
    this.#now = now;
  }

  /** Shows an event of the run loop. */
  show(event: RunEvent): void {
    switch (event.kind) {
      case "start":
        this.#steps = event.steps;
        this.#from = event.from;
        this.#lastTime = this.#now();
        if (event.from > 0) this.#say(goingOn(event.from, event.sameRun === false));
        break;
      case "step":
        this.#step(event.step, event.loss, event.tokens);
        break;
      case "evaluate":
        this.#validation = event.loss;
        break;
      case "checkpoint":
        break;
      case "damaged":
        this.#say(`passing over the checkpoint of step ${event.step}: ${event.reason}`);
        break;
      case "spike":
        this.#say(event.reason);
        break;
      case "rollback":
        this.#say(`${event.reason}; back to step ${event.to}, past the batches since`);
        break;
      case "stop":
        this.end();
        if (event.reason === "signal")
          this.#say(`stopped after step ${event.step} of ${this.#steps}`);
        break;
    }
  }

  /** Takes the drawn line away. */
  end(): void {
    if (this.#drawn) this.#terminal.error("\r\u001b[K");
    this.#drawn = false;
  }

  /** Prints a line above the drawn one. */
  #say(line: string): void {
    this.end();
    this.#terminal.error(`${line}\n`);
  }

  #step(step: number, loss: number, tokens: number): void {
    const now = this.#now();
    const took = now - this.#lastTime;
    this.#lastTime = now;
    // The first step warms everything up: it says little about those that follow.
    if (this.#pace === undefined || step === this.#from + 1) this.#pace = took;
    else this.#pace += newest * (took - this.#pace);
    const done = step + 1;
    const line = this.#line(done, loss, tokens / this.#pace, (this.#steps - done) * this.#pace);
    if (this.#terminal.live) {
      const bar = this.#bar(done, line.length);
      // A line that wraps cannot be drawn over: only its last part would be.
      const whole = `${line}${bar}`.slice(0, this.#terminal.liveColumns - 1);
      this.#terminal.error(`\r${whole}\u001b[K`);
      this.#drawn = true;
    } else if (now - this.#lastPlain >= plainEvery || done === this.#steps) {
      this.#terminal.error(`${line}\n`);
      this.#lastPlain = now;
    }
  }

  #line(done: number, loss: number, rate: number, eta: Seconds): string {
    const count = `${String(done).padStart(String(this.#steps).length)}/${this.#steps}`;
    const validation = this.#validation === undefined ? "" : `  val ${this.#validation.toFixed(3)}`;
    const left = done === this.#steps ? "" : `  eta ${formatSeconds(Math.max(1, Math.round(eta)))}`;
    return `step ${count}  loss ${loss.toFixed(3)}${validation}  ${formatCount(rate)} tokens/s${left}`;
  }

  /** The share that is done, in a place of its own: to the right of the longest line there may be. */
  #bar(done: number, length: number): string {
    const count = 2 * String(this.#steps).length + 1;
    const longest =
      "step   loss 0.000  val 0.000  00.00 k tokens/s  eta 00 min 00 s".length + count;
    const cells = Math.min(32, this.#terminal.liveColumns - longest - 3);
    if (cells < 6) return "";
    const full = Math.round((done / this.#steps) * cells);
    const gap = Math.max(2, longest + 2 - length);
    return `${" ".repeat(gap)}${"━".repeat(full)}${"─".repeat(cells - full)}`;
  }
}

function goingOn(from: number, changed: boolean): string {
  const other = changed ? ", saved by a run with other settings" : "";
  return `going on after step ${from}${other}`;
}
