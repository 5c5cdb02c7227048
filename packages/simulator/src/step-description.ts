/** A training step in numbers: what a program of it is made from. */
import type { Bytes, Flops, Seconds } from "@trireme/core";
import type { Schedule } from "@trireme/schedulers";
import type { Lane, SpanKind } from "@trireme/timeline";

/** A collective and the time it takes. */
export interface TimedCollective {
  readonly kind: SpanKind;
  readonly lane: Lane;
  /** The full buffer. */
  readonly bytes: Bytes;
  readonly duration: Seconds;
}

/** A part of an action on one stage: computing, then what of its communication computing does not hide. */
export interface Part {
  readonly kind: SpanKind;
  readonly duration: Seconds;
  readonly flops: Flops;
  /** Of the tensor-parallel group. */
  readonly tensor: readonly TimedCollective[];
  /** Of the data-parallel group: ZeRO-3's gathering and scattering. */
  readonly data: readonly TimedCollective[];
}

/** The parts of each action of one stage, in order. */
export interface StageParts {
  readonly F: readonly Part[];
  readonly B: readonly Part[];
  readonly I: readonly Part[];
  readonly W: readonly Part[];
}

/** A message between two ranks: the time on the sender's way out, and from its end to arrival. */
export interface Transfer {
  readonly duration: Seconds;
  readonly latency: Seconds;
  readonly bytes: Bytes;
  readonly lane: Lane;
}

/** Data parallelism once a step, and the update; what does not happen is left out. */
export interface SyncCosts {
  /** Behind the last backward and the first forward of each stage, in pieces. */
  readonly overlap: boolean;
  /** By stage: into how many pieces, one a layer, its gradients and weights are cut with overlap. */
  readonly pieces: readonly number[];
  /** By stage: one piece (without overlap the whole) of reducing gradients and gathering weights. */
  readonly reduce: readonly (TimedCollective | undefined)[];
  readonly gather: readonly (TimedCollective | undefined)[];
  /** By stage: gradients of what the ranks of a tensor-parallel group hold in common. */
  readonly common: readonly (TimedCollective | undefined)[];
  /** The tied embedding's gradient, between the pipeline ranks of the first and the last stage. */
  readonly tied?: TimedCollective;
  /** By pipeline rank: the update. */
  readonly optimizer: ArrayLike<Seconds>;
}

/** One step of `dp` replicas. Rank (p, d, t) has number (p × dp + d) × tp + t. */
export interface StepDescription {
  /** Lowered: with its sends and receives. */
  readonly schedule: Schedule;
  /** Ranks simulated of each tensor-parallel group and of each data-parallel group. */
  readonly tp: number;
  readonly dp: number;
  /** By stage. */
  readonly parts: readonly StageParts[];
  readonly transfer: (from: number, to: number) => Transfer;
  /** A rank waits until its send has arrived before it goes on. */
  readonly blockingSends: boolean;
  readonly sync: SyncCosts;
}

/** Streams of collectives; those of different streams run side by side. */
export const streams = { tensor: 0, data: 1 } as const;
