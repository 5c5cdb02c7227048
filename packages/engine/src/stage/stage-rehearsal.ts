/**
 * Stages that sleep as long as computing would take: schedule, messages and reductions are real. More
 * ranks than cores can so show what a schedule does to the time of a step.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import type { StageCompute } from "./stage-compute.ts";

/** How long the actions of one microbatch in one stage take; B takes I and W together. */
export interface ActionSeconds {
  readonly F: Seconds;
  readonly I: Seconds;
  readonly W: Seconds;
}

/** A rehearsal: how long what would be computed takes, and how it is begun. */
export interface Rehearsal extends ActionSeconds {
  /**
   * Steps that go by without sleeping before the runtime stands ready: until V8 has compiled what plays
   * a step, which takes it some hundred, calls between two actions take several times as long. Default 0.
   */
  readonly warmUps?: number;
}

/** Throws `REHEARSAL` for times and counts that are none. */
export function checkRehearsal({ F, I, W, warmUps = 0 }: Rehearsal): void {
  const wrong = Object.entries({ F, I, W }).find(([, s]) => !(s >= 0 && s < longest));
  if (wrong !== undefined) {
    throw new TriremeError(
      "REHEARSAL",
      `${wrong[0]} of a rehearsal is ${wrong[1]} s; an action takes at least 0 s and less than ${longest} s`,
    );
  }
  if (Number.isInteger(warmUps) && warmUps >= 0) return;
  throw new TriremeError("REHEARSAL", `warmUps ${warmUps} must be an integer of at least 0`);
}

/** A timer of the host counts milliseconds in 31 bits. */
const longest = 2 ** 31 / 1e3;

/** What stages need to sleep. */
interface RehearsalOptions {
  readonly now: () => Seconds;
  /** How they sleep; default for real. */
  readonly sleep?: ((seconds: Seconds) => void) | undefined;
}

/**
 * An action takes its time from its beginning on: what it gives is made first, and it sleeps for the
 * rest.
 * @param boundary Dims of what stages give each other.
 */
export function rehearsedStages(
  { F, I, W }: ActionSeconds,
  boundary: readonly number[],
  { now, sleep = sleepNow }: RehearsalOptions,
): StageCompute {
  const seconds = { B: I + W, I, W };
  return {
    forward: ({ tape, training }) => {
      const end = now() + F;
      const output = tape.variable(boundary, training);
      tape.kernels.fill(output.value.pointer, 0, output.value.size);
      sleep(end - now());
      return { output, loss: 0 };
    },
    backward: ({ tape, input }, kind) => {
      const end = now() + seconds[kind];
      if (kind !== "W" && input !== undefined) {
        input.gradient = tape.allocate(input.value.dims);
        tape.kernels.fill(input.gradient.pointer, 0, input.gradient.size);
      }
      sleep(end - now());
    },
  };
}

const never = new Int32Array(new SharedArrayBuffer(4));

/** Out of a long sleep a core comes up to 0.3 ms late, and differently each time; out of a short one not. */
const lastMilliseconds = 1;

/** Sleeps for real; not at all for a time that is over. */
export function sleepNow(seconds: Seconds): void {
  const end = performance.now() + seconds * 1e3;
  for (const before of [lastMilliseconds, 0]) {
    const left = end - before - performance.now();
    if (left > 0) Atomics.wait(never, 0, 0, left);
  }
}
