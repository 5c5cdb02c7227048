/** torchft's lighthouse quorum and manager recovery assignment, as pure functions of their inputs. */
import type { Seconds } from "@trireme/core";

export interface Participant {
  readonly replica: string;
  readonly step: number;
  readonly shrinkOnly?: boolean;
  readonly commitFailures?: number;
  /** When it asked to join. */
  readonly joined: Seconds;
}

export interface Quorum {
  readonly id: number;
  readonly members: readonly Participant[];
}

export interface QuorumOptions {
  readonly now: Seconds;
  readonly participants: readonly Participant[];
  /** Last heartbeat of every replica known, participants or not. */
  readonly heartbeats: ReadonlyMap<string, Seconds>;
  readonly previous?: Quorum;
  readonly minReplicas: number;
  /** How long to wait for stragglers; must exceed the time a replica takes to recover. */
  readonly joinTimeout: Seconds;
  /** Age from which a heartbeat is stale; 5 s by default. */
  readonly heartbeatTimeout?: Seconds;
}

export type QuorumDecision =
  | { readonly ok: true; readonly quorum: Quorum; readonly fast: boolean }
  | { readonly ok: false; readonly reason: string };

/**
 * Decides whether the participants form a quorum now. A fast quorum needs every member of the
 * previous one; any quorum needs more than half of the replicas that are heartbeating, so that two
 * disjoint quorums cannot stand at once.
 */
export function decideQuorum(options: QuorumOptions): QuorumDecision {
  const { now, participants, heartbeats, previous, minReplicas, joinTimeout } = options;
  const timeout = options.heartbeatTimeout ?? 5;
  const alive = new Set(
    [...heartbeats].filter(([, at]) => now - at < timeout).map(([name]) => name),
  );
  const before = new Set(previous?.members.map((member) => member.replica));
  let members = participants
    .filter((each) => alive.has(each.replica))
    .toSorted((a, b) => (a.replica < b.replica ? -1 : a.replica > b.replica ? 1 : 0));
  const here = new Set(members.map((each) => each.replica));
  const joining = members.length;
  if (previous !== undefined && members.some((each) => each.shrinkOnly === true)) {
    members = members.filter((each) => before.has(each.replica));
  }
  const fast = previous !== undefined && [...before].every((name) => here.has(name));
  if (members.length < minReplicas) {
    return { ok: false, reason: `need at least ${minReplicas} replicas, have ${members.length}` };
  }
  if (!fast && members.length * 2 <= alive.size) {
    return { ok: false, reason: `need at least half of ${alive.size} healthy workers` };
  }
  if (!fast && joining < alive.size) {
    const waited = now - Math.min(...members.map((each) => each.joined));
    if (waited < joinTimeout) {
      return { ok: false, reason: `waiting for ${alive.size - joining} healthy workers to join` };
    }
  }
  const changed =
    previous === undefined ||
    previous.members.length !== members.length ||
    members.some((each) => !before.has(each.replica)) ||
    members.some((each) => (each.commitFailures ?? 0) > 0);
  const id = (previous?.id ?? 0) + (changed ? 1 : 0);
  return { ok: true, fast, quorum: { id, members } };
}

export interface RecoveryAssignment {
  /** Replica index this one fetches its state from, undefined where it need not heal. */
  readonly healFrom: number | undefined;
  /** Replica indices this one sends its state to. */
  readonly sendTo: readonly number[];
}

/**
 * Who heals from whom: replicas behind the greatest step fetch from those at it, dealt round-robin
 * and shifted by `groupRank`, so that no one source serves all. At step 0 with `initSync` all take
 * the state of one primary, so that they start equal.
 */
export function assignRecovery(
  steps: readonly number[],
  options: { readonly groupRank?: number; readonly initSync?: boolean } = {},
): readonly RecoveryAssignment[] {
  const { groupRank = 0, initSync = true } = options;
  const greatest = steps.reduce((a, b) => Math.max(a, b), 0);
  const current = steps.flatMap((step, i) => (step === greatest ? [i] : []));
  const primary = current[groupRank % current.length];
  const initial = initSync && greatest === 0;
  const behind = steps.flatMap((step, i) =>
    step !== greatest || (initial && i !== primary) ? [i] : [],
  );
  // At step 0 only the primary's state counts; later every replica at the greatest step has it.
  const from = new Map<number, number>();
  for (const [i, replica] of behind.entries()) {
    from.set(replica, initial ? primary! : current[(i + groupRank) % current.length]!);
  }
  return steps.map((_, i) => ({
    healFrom: from.get(i),
    sendTo: behind.filter((each) => from.get(each) === i),
  }));
}
