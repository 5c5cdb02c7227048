/** How programs are played, and what playing tells beside spans. */
import type { Seconds } from "@trireme/core";
import type { SharedHost } from "./core-pools.ts";
import type { Jitter } from "./jitter.ts";
import type { SharedNetwork } from "./shared-ways.ts";

/** How a program is played. */
export interface PlayOptions {
  /** Hosts whose ranks share fewer cores than there are ranks; the others compute at full speed. */
  readonly shared?: readonly SharedHost[];
  /** Speed of each rank's computing: 1 as declared, 0.5 half as fast; above 0. All 1 when left out. */
  readonly speed?: ArrayLike<number>;
  /** Random variation of computing; none when left out. */
  readonly jitter?: Jitter;
  /** Links that messages and collectives share; each has ways of its own when left out. */
  readonly network?: SharedNetwork;
  /** Name of a rank in messages; its own number when left out. */
  readonly rankOf?: ArrayLike<number>;
  /** Filled with times as the program is played, when given. */
  readonly observed?: Observed;
}

/** When what happened; made by `observedTimes`. */
export interface Observed {
  /** When each instruction was taken, rank after rank; see `eachInstruction`. */
  readonly taken: Float64Array;
  /** When each message arrived. */
  readonly arrived: Float64Array;
}

/** What playing came to. */
export interface Played {
  /** Events taken from the queue. */
  readonly events: number;
  /** Time of the last. */
  readonly end: Seconds;
}
