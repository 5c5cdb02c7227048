/** A training step in numbers: what a program of it is made from. */
import type { Bytes, Flops, Seconds } from "@trireme/core";
import type { Schedule } from "@trireme/schedulers";
import type { Lane, SpanKind } from "@trireme/timeline";
import type { SimulatedRanks } from "./fold.ts";
import type { GroupAxis } from "./rank-layout.ts";

/** A collective along an axis and the time it takes. */
export interface TimedCollective {
  readonly kind: SpanKind;
  readonly axis: GroupAxis;
  readonly lane: Lane;
  /** The full buffer. */
  readonly bytes: Bytes;
  readonly duration: Seconds;
}

/** A kernel, or several of one kind in a row. */
export interface Kernel {
  /** Kind and form: "gemm/bf16". */
  readonly name: string;
  readonly duration: Seconds;
  readonly flops: Flops;
}

/** A part of an action on one stage: computing, with what runs behind it, then what does not. */
export interface Part {
  readonly kind: SpanKind;
  readonly duration: Seconds;
  readonly flops: Flops;
  /** What of communication computing hides: it starts with the computing, which is the longer. */
  readonly hidden: readonly TimedCollective[];
  /** What it does not. */
  readonly exposed: readonly TimedCollective[];
  /** What of `duration` is attention, whose work depends on the lengths of documents. */
  readonly attention: Seconds;
  /** What of `duration` is routed experts, whose work depends on the routes of tokens. */
  readonly experts: Seconds;
  /** Kernels of the computing in order, their times adding up to `duration`; at the grain of operators. */
  readonly kernels?: readonly Kernel[];
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
  /** By stage: one piece (without overlap the whole) of reducing gradients and gathering weights. */
  readonly reduce: readonly (readonly TimedCollective[])[];
  readonly gather: readonly (readonly TimedCollective[])[];
  /** By stage: gradients of what the ranks of a group that is not of replicas hold in common. */
  readonly common: readonly (readonly TimedCollective[])[];
  /** By stage: gradients of the copy that the other direction of a bidirectional pipeline trains. */
  readonly mirror: readonly (Omit<TimedCollective, "axis"> | undefined)[];
  /** The tied embedding's gradient, between the pipeline ranks of the first and the last stage. */
  readonly tied?: Omit<TimedCollective, "axis">;
  /** By pipeline rank: the update, on the device or its host. */
  readonly optimizer: ArrayLike<Seconds>;
  readonly optimizerLane: Lane;
}

/** What differs from rank to rank or from microbatch to microbatch; all takes real ranks. */
export interface Variation {
  /** Multiplies attention's time of a part. */
  attention?(rank: number, microbatch: number): number;
  /** Multiplies routed experts' time of a part in one of its layers; `layer` counts from the stage's first. */
  experts?(rank: number, stage: number, layer: number, microbatch: number): number;
  /** Multiplies the time of an exchange with experts, likewise; the same for all ranks of a group. */
  exchange?(rank: number, stage: number, layer: number, microbatch: number): number;
}

/** One step of the simulated ranks. */
export interface StepDescription {
  /** Lowered: with its sends and receives. */
  readonly schedule: Schedule;
  readonly ranks: SimulatedRanks;
  /** By stage of the schedule. */
  readonly parts: readonly StageParts[];
  /**
   * By stage of the schedule: layers, into which its first forward, its last backward, and with uneven experts every
   * action are cut.
   */
  readonly layers: ArrayLike<number>;
  /** Between two ranks of the plan. */
  readonly transfer: (from: number, to: number) => Transfer;
  /** A rank waits until its send has arrived before it goes on. */
  readonly blockingSends: boolean;
  readonly sync: SyncCosts;
  /** By rank of the plan, for those that read data: how long they load before they begin. */
  readonly loading?: (rank: number) => Seconds;
  readonly variation?: Variation;
}

/** Streams of collectives; those of different streams run side by side. */
export const streams: Readonly<Record<GroupAxis, number>> = {
  tp: 0,
  cp: 1,
  ep: 2,
  etp: 2,
  dp: 3,
  edp: 3,
};
