/**
 * Finds the culprit in flight records: the first collective call of a group that ranks made
 * differently, and ranks that did not come to the last one the others are in.
 */
import type { Flight } from "./flight-record.ts";
import { printCall, sameCall } from "./operation.ts";

/** One thing found. `ranks` are the culprits: those that differ from the first rank, or are missing. */
export interface FlightFinding {
  readonly kind: "mismatch" | "missing";
  readonly group: number;
  readonly sequence: number;
  readonly ranks: readonly number[];
  readonly message: string;
}

const pointToPoint = new Set(["send", "receive"]);

/** What the records of all ranks show, by group; empty when nothing is amiss. */
export function analyseFlights(records: readonly (readonly Flight[])[]): FlightFinding[] {
  const byGroup = new Map<number, Map<number, Flight[]>>();
  for (const flight of records.flat()) {
    if (pointToPoint.has(flight.operation)) continue;
    const calls = byGroup.get(flight.group) ?? new Map<number, Flight[]>();
    byGroup.set(flight.group, calls);
    calls.set(flight.sequence, [...(calls.get(flight.sequence) ?? []), flight]);
  }
  const findings: FlightFinding[] = [];
  for (const [group, calls] of byGroup) {
    // They go round.
    const sequences = [...calls.keys()].toSorted((a, b) => (a - b) | 0);
    const members = new Set([...calls.values()].flat().map((flight) => flight.rank));
    let mismatched = false;
    for (const sequence of sequences) {
      const [first, ...others] = calls.get(sequence)!;
      const differing = others.filter((other) => !sameCall(other, first!));
      if (differing.length === 0) continue;
      mismatched = true;
      const says = [first!, ...differing].map((f) => `rank ${f.rank} calls ${printCall(f)}`);
      findings.push({
        kind: "mismatch",
        group,
        sequence,
        ranks: differing.map((f) => f.rank),
        message: `call ${sequence} of group ${group}: ${says.join(", ")}`,
      });
      break;
    }
    // After a mismatch all ranks stop: who has not come yet is not at fault.
    if (mismatched) continue;
    const last = sequences.at(-1)!;
    const inside = calls.get(last)!;
    const missing = [...members].filter((rank) => !inside.some((flight) => flight.rank === rank));
    if (missing.length > 0 && inside.some((flight) => flight.state === "running")) {
      findings.push({
        kind: "missing",
        group,
        sequence: last,
        ranks: missing.toSorted((a, b) => a - b),
        message: `${inside[0]!.operation} ${last} of group ${group}: rank${missing.length === 1 ? "" : "s"} ${missing.toSorted((a, b) => a - b).join(", ")} did not call it`,
      });
    }
  }
  return findings;
}
