/** What a driver tells where it runs: messages it passes on, and what has changed in its record. */
import type { DriverRecord } from "../../driver/driver-record.ts";
import type { Endpoint, Launch } from "../../driver/launch.ts";
import type { LogMessage, MetricsMessage, RunEnd } from "../../driver/message.ts";

/** A decision; told once it is durable. */
export type DriverChange =
  /** Members leave their generation; `reason` is what the recovery controller knows of the cause. */
  | { readonly kind: "halt"; readonly generation: number; readonly members: readonly number[] }
  | { readonly kind: "evict"; readonly host: number; readonly reason: string }
  | { readonly kind: "launch"; readonly launch: Launch; readonly step: number }
  /** Every member has saved the state after this step. */
  | { readonly kind: "progress"; readonly step: number }
  | { readonly kind: "stop-asked" }
  | { readonly kind: "stop-agreed"; readonly step: number }
  | { readonly kind: "end"; readonly end: RunEnd };

export type DriverEvent =
  | DriverChange
  | {
      readonly kind: "lead";
      readonly term: number;
      readonly endpoint: Endpoint;
      /** Whether the run goes on from the record of a driver before. */
      readonly resumed: boolean;
    }
  | { readonly kind: "join"; readonly host: number }
  | { readonly kind: "disconnect"; readonly host: number }
  /** A connection or a message that was not taken. */
  | { readonly kind: "refuse"; readonly reason: string }
  | LogMessage
  | MetricsMessage;

/** What a record has that the one before had not. */
export function changesOf(
  before: DriverRecord | undefined,
  after: DriverRecord,
): readonly DriverChange[] {
  const changes: DriverChange[] = [];
  const was = before?.controller;
  const is = after.controller;
  for (const [host, reason] of is?.evicted ?? []) {
    if (was?.evicted.has(host) !== true) changes.push({ kind: "evict", host, reason });
  }
  if (is !== undefined && is.committed > (was?.committed ?? 0)) {
    changes.push({ kind: "progress", step: is.committed });
  }
  if (is?.phase === "halting" && is.generation !== was?.generation) {
    changes.push({ kind: "halt", generation: is.generation, members: is.members });
  }
  if (after.launch !== undefined && after.launch !== before?.launch) {
    changes.push({ kind: "launch", launch: after.launch, step: (is?.committed ?? 0) + 1 });
  }
  if (after.stopRequested && before?.stopRequested !== true) changes.push({ kind: "stop-asked" });
  const step = after.stop?.step;
  if (step !== undefined && step !== before?.stop?.step)
    changes.push({ kind: "stop-agreed", step });
  if (after.end !== undefined && before?.end === undefined) {
    changes.push({ kind: "end", end: after.end });
  }
  return changes;
}
