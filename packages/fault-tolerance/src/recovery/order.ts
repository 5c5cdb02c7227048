/** The order that answers a host, as the record stands. */
import { TriremeError } from "@trireme/core";

import type { Order, Report } from "./protocol.ts";
import type { ControllerRecord } from "./record.ts";

/** @param member Whether the host is a member of the generation. */
export function orderOf(record: ControllerRecord, host: number, member: boolean): Order {
  const { phase, generation, committed, evicted, skip, version, check } = record;
  const reason = evicted.get(host);
  if (reason !== undefined) return { kind: "evict", reason };
  if (phase === "training" && member) {
    const skipped = skip > 0 ? { skip } : {};
    const code = version === 0 ? {} : { version };
    return { kind: "train", generation, step: committed + 1, ...skipped, ...code };
  }
  // A standby waits below the generation that may hire it.
  if (!member && phase !== "stopped") return { kind: "halt", generation: 0 };
  return { kind: "halt", generation, ...(check && phase === "halting" ? { check } : {}) };
}

/** @throws TriremeError "STALE_RECORD" for a host of a generation that the record does not know. */
export function refuseStale(record: ControllerRecord, { host, generation }: Report): void {
  if (generation <= record.generation) return;
  throw new TriremeError(
    "STALE_RECORD",
    `host ${host} is in generation ${generation}, but the record has come to ${record.generation}: another controller leads, or its record is lost`,
  );
}
