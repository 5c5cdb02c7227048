/**
 * How far a generation has come at a time, in closed form: steps, saves, and where it was stopped. The
 * time of a step may change on the way: each stretch of one step time goes on from where the last ended.
 */
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

/** A part of a generation in which every step takes the same time. */
export interface Stretch {
  readonly from: Seconds;
  /** Infinity where training stands still. */
  readonly stepTime: Seconds;
  /** Cycles of steps and a save that are over at `from`. */
  readonly cycles: number;
  /** Steps done in the cycle under way, of the one in progress its share. */
  readonly steps: number;
  /** How long the save of that cycle has blocked training so far. */
  readonly saving: Seconds;
}

type Position = Pick<Stretch, "cycles" | "steps" | "saving">;

export class Progress {
  readonly input: ProgressInput;
  /** When the first step begins; Infinity while members are still to join. */
  #began: Seconds = Infinity;
  /** When training was stopped; Infinity while it goes on. */
  frozen: Seconds = Infinity;
  readonly #stretches: Stretch[];

  constructor(input: ProgressInput) {
    this.input = input;
    const { stepTime } = input;
    this.#stretches = [{ from: Infinity, stepTime, cycles: 0, steps: 0, saving: 0 }];
  }

  get began(): Seconds {
    return this.#began;
  }

  get stretches(): readonly Stretch[] {
    return this.#stretches;
  }

  begin(at: Seconds): void {
    this.#began = at;
    this.#stretches[0] = { ...this.#stretches[0]!, from: at };
  }

  freeze(at: Seconds): void {
    this.frozen = Math.min(this.frozen, at);
  }

  /** From a time on, no earlier than the last such, steps take another time; Infinity: none ends. */
  retime(at: Seconds, stepTime: Seconds): void {
    const last = this.#stretches.at(-1)!;
    if (stepTime === last.stepTime || at >= this.frozen) return;
    if (at <= last.from) this.#stretches[this.#stretches.length - 1] = { ...last, stepTime };
    else this.#stretches.push({ from: at, stepTime, ...this.#position(at) });
  }

  /** The last step done by a time; the one before the first where none is. */
  done(at: Seconds): number {
    const { step, every } = this.input;
    const until = Math.min(at, this.frozen);
    if (!(until > this.#began)) return step - 1;
    const { cycles, steps } = this.#position(until);
    return step - 1 + cycles * every + Math.floor(steps);
  }

  /** The last step durable by a time; the one before the first where none is. */
  saved(at: Seconds): number {
    const { step, every, durable } = this.input;
    const until = Math.min(at - durable, this.frozen);
    if (!(until > this.#began)) return step - 1;
    return step - 1 + this.#position(until).cycles * every;
  }

  /** Time of the steps up to one: the time that they trained, saves and standstill left out. */
  trained(step: number): Seconds {
    const { every } = this.input;
    const count = step - this.input.step + 1;
    let time = 0;
    for (const [i, { cycles, steps, stepTime }] of this.#stretches.entries()) {
      const next = this.#stretches[i + 1];
      const first = cycles * every + steps;
      const last = Math.min(count, next ? next.cycles * every + next.steps : count);
      if (last > first) time += (last - first) * stepTime;
    }
    return time;
  }

  /** How long saves have blocked training by a time. */
  blocked(at: Seconds): Seconds {
    const until = Math.min(at, this.frozen);
    if (!(until > this.#began)) return 0;
    const { cycles, saving } = this.#position(until);
    return cycles * this.input.write + saving;
  }

  #position(at: Seconds): Position {
    const { every, write } = this.input;
    let i = this.#stretches.length - 1;
    while (i > 0 && this.#stretches[i]!.from > at) i--;
    const { from, stepTime, cycles, steps, saving } = this.#stretches[i]!;
    if (stepTime === Infinity) return { cycles, steps, saving };
    const cycle = every * stepTime + write;
    const passed = steps * stepTime + saving + (at - from);
    const over = Math.floor(passed / cycle);
    const rest = passed - over * cycle;
    // What was done before stays done, whatever a division may round.
    const before = over === 0 ? steps : 0;
    return {
      cycles: cycles + over,
      steps: Math.min(every, Math.max(before, rest / stepTime)),
      saving: Math.max(0, rest - every * stepTime),
    };
  }
}
