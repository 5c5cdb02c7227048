/** Tells a controller again what another was told, and compares what comes of it. */
import { RecoveryController } from "../recovery/controller.ts";
import type { ControllerOptions } from "../recovery/options.ts";
import { decodeRecord, encodeRecord } from "../recovery/record.ts";
import { type ControllerFactory, type ControllerLike, type TraceEntry, apply } from "./seat.ts";

export type Replay =
  | { readonly same: true; readonly entries: number }
  /** The first entry that came out otherwise. */
  | {
      readonly same: false;
      readonly index: number;
      readonly entry: TraceEntry;
      readonly got: string;
    };

/**
 * Plays a trace, each seat's inputs in their order, and compares every order and every record.
 * A trace of a live driver replays just so: what it was told is all that its decisions depend on.
 */
export function replayTrace(
  trace: readonly TraceEntry[],
  options: ControllerOptions,
  controller: ControllerFactory = (...all) => new RecoveryController(...all),
): Replay {
  const seats = new Map<number, ControllerLike>();
  for (const [index, entry] of trace.entries()) {
    if (entry.input.kind === "start") {
      seats.set(entry.seat, controller(options, entry.at, decodeRecord(entry.input.record)));
      continue;
    }
    const told = seats.get(entry.seat);
    if (told === undefined)
      return { same: false, index, entry, got: "no start of this seat before it" };
    const before = told.record;
    const order = apply(told, entry.input, entry.at);
    const record = told.record === before ? undefined : encodeRecord(told.record);
    const got = JSON.stringify({ order, record });
    if (got !== JSON.stringify({ order: entry.order, record: entry.record })) {
      return { same: false, index, entry, got };
    }
  }
  return { same: true, entries: trace.length };
}
