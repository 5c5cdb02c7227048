/** From the compute actions of a schedule to all that a runtime executes. */
import { mergeBackward } from "./merge-backward.ts";
import type { Schedule } from "./schedule.ts";
import { addSendReceive } from "./send-receive.ts";
import { addEarlySendReceive } from "./send-receive-early.ts";
import { addReduceGrad, addUnshardReshard } from "./weight-actions.ts";

export interface LowerOptions {
  /** Join each I with the W right behind it to a B; off when left out. */
  readonly mergeBackward?: boolean;
  /** Add UNSHARD and RESHARD with at most this many stages unsharded; none when left out. */
  readonly maxUnsharded?: number;
  /** Add REDUCE_GRAD; off when left out. */
  readonly reduceGrad?: boolean;
  /**
   * `late` (the default): for sends that do not block; receives come just before use, and in order
   * of the sends between two ranks. `early`: torch's order, which also runs where a send waits for
   * its receive.
   */
  readonly receives?: "late" | "early";
}

/** Adds SEND and RECV in a deadlock-free order, and what else the options ask for. */
export function lower(s: Schedule, o: LowerOptions = {}): Schedule {
  let out = o.mergeBackward === true ? mergeBackward(s) : s;
  if (o.maxUnsharded !== undefined) out = addUnshardReshard(out, { maxUnsharded: o.maxUnsharded });
  if (o.reduceGrad === true) out = addReduceGrad(out);
  return o.receives === "early" ? addEarlySendReceive(out) : addSendReceive(out);
}
