/** From one record to the next: what each decision changes, and nothing else. */
import type { Membership } from "./membership.ts";
import type { ControllerRecord, StopKind } from "./record.ts";

/** Hosts with what speaks against each. */
export type Evidence = ReadonlyMap<number, string>;

export const nobody: Evidence = new Map();

/** Members leave their generation; whoever there is evidence against is evicted. */
export function withHalted(
  record: ControllerRecord,
  evidence: Evidence,
  change: Partial<ControllerRecord>,
): ControllerRecord {
  const begins = record.phase === "training";
  return {
    ...withEvicted(record, evidence),
    phase: "halting",
    // A host lost while halting needs no further generation: the one to come has not begun.
    generation: record.generation + (begins ? 1 : 0),
    check: begins ? false : record.check,
    ...change,
  };
}

/** Hosts are members or standbys no more. */
export function withEvicted(record: ControllerRecord, evidence: Evidence): ControllerRecord {
  if (evidence.size === 0) return record;
  return {
    ...record,
    members: without(record.members, evidence),
    standbys: without(record.standbys, evidence),
    evicted: new Map([...record.evicted, ...evidence]),
  };
}

/** The generation to come trains, on the version of the code that was waiting. */
export function withTrained(record: ControllerRecord, next: Membership): ControllerRecord {
  const { pending, ...state } = record;
  // What to go back to is the last version that has committed a step.
  const { previous = state.version } = state;
  const update = pending && { version: pending.version, previous, attempts: 0 };
  const rest = state.standbys.filter((host) => !next.hired.includes(host));
  return {
    ...state,
    ...update,
    phase: "training",
    members: next.members,
    layout: next.members,
    standbys: [...rest, ...next.spared],
    check: false,
  };
}

/** Steps are committed: what came before is proven. */
export function withCommitted(
  record: ControllerRecord,
  step: number,
  keep: number,
): ControllerRecord {
  const { previous: _, ...rest } = record;
  return { ...rest, committed: step, saves: [...rest.saves, step].slice(-keep), attempts: 0 };
}

/** The end, in a generation above every one that has trained, so that its members leave. */
export function withStopped(
  record: ControllerRecord,
  stop: StopKind,
  reason: string,
): ControllerRecord {
  const generation = record.generation + (record.phase === "training" ? 1 : 0);
  return { ...record, phase: "stopped", generation, stop, reason };
}

/** A list less a few of its hosts; itself where it has none of them. */
function without(hosts: readonly number[], few: Evidence): readonly number[] {
  let rest = hosts;
  for (const host of few.keys()) {
    const at = rest.indexOf(host);
    if (at >= 0) rest = rest.toSpliced(at, 1);
  }
  return rest;
}
