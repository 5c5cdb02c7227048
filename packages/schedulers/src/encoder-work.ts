/** How long a model's encoders (images, sound) work for each microbatch, and in how many pieces. */
import { type Seconds, TriremeError } from "@trireme/core";
import type { Schedule } from "./schedule.ts";

export interface EncoderWork {
  /** Encoder forward of one microbatch on one rank; microbatches may differ. */
  readonly forward: Seconds | ((microbatch: number) => Seconds);
  /** Encoder backward of one microbatch; 0 when left out (a frozen encoder). */
  readonly backward?: Seconds | ((microbatch: number) => Seconds);
  /** Equal pieces into which a microbatch's work falls; one for each rank when left out. */
  readonly pieces?: number;
  /** From the end of the encoder to the first stage, and back; 0 when left out. */
  readonly transfer?: Seconds;
  /** Most microbatches encoded before the first stage takes them; Infinity when left out. */
  readonly ahead?: number;
}

/** Encoder work as columns by microbatch, checked: seconds of one piece. */
export interface PieceTimes {
  readonly forward: Float64Array;
  readonly backward: Float64Array;
  readonly pieces: number;
  readonly transfer: Seconds;
  readonly ahead: number;
}

/** Checks encoder work and spreads it over pieces. */
export function checkedWork(s: Schedule, work: EncoderWork): PieceTimes {
  const { pieces = s.ranks, transfer = 0, ahead = Infinity } = work;
  if (!Number.isInteger(pieces) || pieces < 1) {
    throw new TriremeError("COST", `encoder pieces = ${pieces} is not an integer of 1 or more`);
  }
  if (!(ahead >= 1))
    throw new TriremeError("COST", `encoder ahead = ${ahead} microbatches is less than 1`);
  const column = (name: string, cost: Seconds | ((m: number) => Seconds)): Float64Array =>
    Float64Array.from({ length: s.microbatches }, (_, m) => {
      const time = typeof cost === "number" ? cost : cost(m);
      if (time >= 0 && time < Infinity) return time / pieces;
      throw new TriremeError(
        "COST",
        `encoder ${name} of microbatch ${m} is ${time}; it is finite and at least 0`,
      );
    });
  if (!(transfer >= 0 && transfer < Infinity)) {
    throw new TriremeError("COST", `encoder transfer is ${transfer}; it is finite and at least 0`);
  }
  const backward = s.forwardOnly ? 0 : (work.backward ?? 0);
  return {
    forward: column("forward", work.forward),
    backward: column("backward", backward),
    pieces,
    transfer,
    ahead,
  };
}
