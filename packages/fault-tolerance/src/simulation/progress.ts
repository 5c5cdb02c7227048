/** How far a generation has come at a time, in closed form: steps, saves, and where it was stopped. */
import type { Seconds } from "@trireme/core";

export interface ProgressInput {
  readonly generation: number;
  readonly members: number;
  /** When the order to train was decided. */
  readonly ordered: Seconds;
  /** The first step it trains. */
  readonly step: number;
  readonly stepTime: Seconds;
  /** Steps between saves, how long a save blocks training, and how much later it is durable. */
  readonly every: number;
  readonly write: Seconds;
  readonly durable: Seconds;
}

export class Progress {
  readonly input: ProgressInput;
  /** When the first step begins; Infinity while members are still to join. */
  began: Seconds = Infinity;
  /** When training was stopped; Infinity while it goes on. */
  frozen: Seconds = Infinity;

  constructor(input: ProgressInput) {
    this.input = input;
  }

  freeze(at: Seconds): void {
    this.frozen = Math.min(this.frozen, at);
  }

  /** The last step done by a time; the one before the first where none is. */
  done(at: Seconds): number {
    const { step, stepTime, every } = this.input;
    const passed = Math.min(at, this.frozen) - this.began;
    if (!(passed > 0)) return step - 1;
    const cycles = Math.floor(passed / this.#cycle);
    const rest = Math.floor((passed - cycles * this.#cycle) / stepTime);
    return step - 1 + cycles * every + Math.min(every, rest);
  }

  /** The last step durable by a time; the one before the first where none is. */
  saved(at: Seconds): number {
    const { step, every, durable } = this.input;
    const written = Math.floor((at - durable - this.began) / this.#cycle);
    const taken = Math.floor((this.frozen - this.began) / this.#cycle);
    const saves = Math.min(written, taken);
    return step - 1 + (saves > 0 ? saves : 0) * every;
  }

  get #cycle(): Seconds {
    return this.input.every * this.input.stepTime + this.input.write;
  }
}
