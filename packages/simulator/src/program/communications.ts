/** What a program declares of messages and collectives. */
import type { Seconds } from "@trireme/core";

/** A message from one rank to another. */
export interface Message {
  readonly from: number;
  readonly to: number;
  /** How long it occupies the sender's way out. */
  readonly duration: Seconds;
  /** From the end of that to its arrival. */
  readonly latency: Seconds;
  /** Labels of the spans of the sender and of the receiver. */
  readonly send: number;
  readonly receive: number;
}

/** A collective among the ranks of a group; it starts when all have come and their stream is free. */
export interface Collective {
  readonly group: number;
  /** Collectives of one stream run one after the other, in the order in which a rank enters them. */
  readonly stream: number;
  readonly duration: Seconds;
  /** Label of its spans. */
  readonly label: number;
}

/** Several messages, each at one place of every list; see `Message`. */
export interface MessageRow {
  readonly from: ArrayLike<number>;
  readonly to: ArrayLike<number>;
  readonly duration: ArrayLike<number>;
  readonly latency: ArrayLike<number>;
  readonly send: ArrayLike<number>;
  readonly receive: ArrayLike<number>;
}

/** Collectives of several groups that differ in nothing else. */
export interface CollectiveRow {
  readonly groups: ArrayLike<number>;
  readonly stream: number;
  readonly duration: Seconds;
  readonly label: number;
}
