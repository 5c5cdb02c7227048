/** What a call is made of: messages out and in, and a sum. */
import type { ElementType } from "./element-type.ts";

/** Kinds of message within one call. */
export const phases = { pointToPoint: 0, contribution: 1, result: 2 } as const;

/** A message to or from one peer. `peer` is a rank of the arena; `count` in elements. */
export interface Message {
  readonly peer: number;
  readonly phase: number;
  readonly bytes: Uint8Array;
  readonly count: number;
  /** An incoming message of the call over the same bytes, which this one passes on as it comes. */
  readonly relays?: Message;
}

/** A sum over the members of a group. */
export interface Sum {
  readonly type: ElementType;
  /** This rank's contribution and where the sum goes; of equal length. */
  readonly own: Uint8Array;
  readonly output: Uint8Array;
  /** The members in the order of the sum, ranks of the arena, this rank among them. */
  readonly order: readonly number[];
  /** Whether the outgoing messages of phase `result` carry the sum, and wait for it. */
  readonly feeds: boolean;
}

/** What a call is made of. */
export interface Parts {
  readonly out?: readonly Message[];
  readonly in?: readonly Message[];
  readonly sum?: Sum;
}
