/** torchft's lighthouse quorum and manager recovery assignment, as pure functions of their inputs. */
import { TriremeError, type Seconds } from "@trireme/core";

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
  /**
   * How long a replica takes to recover, where it is known. A shorter join timeout would close the
   * quorum each time before the replica is there, so that it never comes back: refused.
   */
  readonly recovery?: Seconds;
  /** Age from which a heartbeat is stale; 5 s by default. */
  readonly heartbeatTimeout?: Seconds;
}

export type QuorumDecision =
  | {
      readonly ok: true;
      readonly quorum: Quorum;
      readonly fast: boolean;
      /** Most failures to commit that any member reports. */
      readonly commitFailures: number;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * Decides whether the participants form a quorum now. A fast quorum needs every member of the
 * previous one; any other needs `minReplicas`, more than half of the replicas that are heartbeating,
 * so that two disjoint quorums cannot stand at once, and all of them, or the join timeout passed.
 * The id grows when members change or a commit has failed.
 * @throws TriremeError "QUORUM" for a join timeout shorter than a recovery, times or numbers that are
 * none, and a replica that asks twice: it would count as two of a majority.
 */
export function decideQuorum(options: QuorumOptions): QuorumDecision {
  const { now, participants, heartbeats, previous, minReplicas, joinTimeout, recovery } = options;
  if (recovery !== undefined && !(joinTimeout > recovery)) {
    throw new TriremeError(
      "QUORUM",
      `joinTimeout = ${joinTimeout} s, but a replica takes ${recovery} s to recover: it would never rejoin; use more than ${recovery} s`,
    );
  }
  const timeout = options.heartbeatTimeout ?? 5;
  for (const [name, value] of Object.entries({
    minReplicas,
    joinTimeout,
    heartbeatTimeout: timeout,
  })) {
    if (!(value >= 0)) throw new TriremeError("QUORUM", `${name} = ${value} must be 0 or more`);
  }
  const alive = new Set<string>();
  for (const [name, at] of heartbeats) if (now - at < timeout) alive.add(name);
  const healthy = participants
    .filter((each) => alive.has(each.replica))
    .toSorted((a, b) => (a.replica < b.replica ? -1 : a.replica > b.replica ? 1 : 0));
  const here = new Set(healthy.map((each) => each.replica));
  if (here.size < healthy.length) {
    const twice = healthy.find((each, i) => healthy[i + 1]?.replica === each.replica);
    throw new TriremeError("QUORUM", `replica ${twice?.replica} asks twice: name each once`);
  }
  const before = new Set(previous?.members.map((member) => member.replica));
  const shrinkOnly = previous !== undefined && healthy.some((each) => each.shrinkOnly === true);
  const members = shrinkOnly ? healthy.filter((each) => before.has(each.replica)) : healthy;
  const fast = before.size > 0 && [...before].every((name) => here.has(name));
  if (!fast) {
    const count = healthy.length;
    if (count < minReplicas) {
      return { ok: false, reason: `need at least ${minReplicas} replicas, have ${count}` };
    }
    if (count * 2 <= alive.size) {
      return { ok: false, reason: `need at least half of ${alive.size} healthy workers` };
    }
    const joined = healthy.reduce((least, each) => Math.min(least, each.joined), now);
    if (count < alive.size && now - joined < joinTimeout) {
      return { ok: false, reason: `waiting for ${alive.size - count} healthy workers to join` };
    }
  }
  const commitFailures = members.reduce((most, { commitFailures: n = 0 }) => Math.max(most, n), 0);
  const changed =
    previous === undefined ||
    previous.members.length !== members.length ||
    members.some((each) => !before.has(each.replica));
  const id = (previous?.id ?? 0) + (changed || commitFailures > 0 ? 1 : 0);
  return { ok: true, fast, quorum: { id, members }, commitFailures };
}

/** Whether a replica commits its step: only if every local rank says so, or it is retried. */
export function shouldCommit(votes: readonly boolean[]): boolean {
  return votes.every(Boolean);
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
 * @throws TriremeError "QUORUM" for a step or group rank that is no whole number from 0 up.
 */
export function assignRecovery(
  steps: readonly number[],
  options: { readonly groupRank?: number; readonly initSync?: boolean } = {},
): readonly RecoveryAssignment[] {
  const { groupRank = 0, initSync = true } = options;
  for (const value of [groupRank, ...steps]) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new TriremeError(
      "QUORUM",
      `steps [${steps.slice(0, 8).join(", ")}${steps.length > 8 ? ", …" : ""}] and groupRank ${groupRank}: use whole numbers from 0 up`,
    );
  }
  const greatest = steps.reduce((a, b) => Math.max(a, b), 0);
  const current = steps.flatMap((step, i) => (step === greatest ? [i] : []));
  const primary = current[groupRank % current.length];
  const initial = initSync && greatest === 0;
  const behind = steps.flatMap((step, i) =>
    step !== greatest || (initial && i !== primary) ? [i] : [],
  );
  // At step 0 only the primary's state counts; later every replica at the greatest step has it.
  const from = new Map<number, number>();
  const sendTo = steps.map((): number[] => []);
  for (const [i, replica] of behind.entries()) {
    const source = initial ? primary! : current[(i + groupRank) % current.length]!;
    from.set(replica, source);
    sendTo[source]!.push(replica);
  }
  return sendTo.map((to, i) => ({ healFrom: from.get(i), sendTo: to }));
}
