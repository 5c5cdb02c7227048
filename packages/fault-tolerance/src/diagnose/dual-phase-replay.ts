/**
 * Dual-phase replay (ByteRobust, SOSP'25, section 4.2, algorithm 1): tensor and pipeline parallelism
 * stay as in the job, data parallelism and layers are cut down, and the job is replayed in small
 * groups of m = k·PP machines, twice: n = DP/k groups of machines in a row, then n groups of machines
 * n apart. One faulty machine fails one group of each phase; it lies where the two meet, and that is
 * one machine when m ≤ n.
 */
import { TriremeError } from "@trireme/core";

export interface ReplayOptions {
  readonly pipeline: number;
  readonly data: number;
  /** Data-parallel replicas of a group (k), a divisor of `data`; 1 by default. */
  readonly replicas?: number;
}

export interface ReplayPlan {
  readonly machines: number;
  /** m, machines of a group. */
  readonly groupSize: number;
  /** n, groups of each phase. */
  readonly groups: number;
  /** Machines of each group of the first phase: in a row. */
  readonly horizontal: readonly (readonly number[])[];
  /** Machines of each group of the second phase: n apart. */
  readonly vertical: readonly (readonly number[])[];
  /** Whether one faulty machine is always told from all others: m ≤ n. */
  readonly unique: boolean;
}

/**
 * The groups of both phases for PP × DP machines (one tensor-parallel group each).
 * @throws TriremeError "REPLAY" on sizes that are not positive integers, or replicas that do not divide.
 */
export function dualPhaseReplay(options: ReplayOptions): ReplayPlan {
  const { pipeline, data, replicas = 1 } = options;
  for (const [name, value] of Object.entries({ pipeline, data, replicas })) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new TriremeError("REPLAY", `${name} = ${value}: use an integer from 1 up`);
  }
  if (data % replicas !== 0) {
    let near = replicas;
    while (data % near !== 0) near--;
    throw new TriremeError(
      "REPLAY",
      `replicas = ${replicas} does not divide data = ${data}; the nearest below is ${near}`,
    );
  }
  const [groupSize, groups] = [replicas * pipeline, data / replicas];
  const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
  const horizontal = range(groups).map((a) => range(groupSize).map((i) => a * groupSize + i));
  const vertical = range(groups).map((b) => range(groupSize).map((i) => b + i * groups));
  const machines = pipeline * data;
  return { machines, groupSize, groups, horizontal, vertical, unique: groupSize <= groups };
}

/**
 * The largest k whose plan is unique: the groups are closest to the job. Undefined when even k = 1
 * leaves several suspects (PP > DP).
 */
export function uniqueReplicas(pipeline: number, data: number): number | undefined {
  for (let k = Math.floor(Math.sqrt(data / pipeline)); k >= 1; k--) if (data % k === 0) return k;
  return undefined;
}

export type ReplayVerdict =
  /** The machine, or the few where m > n, that both faulty groups share. */
  | { readonly ok: true; readonly suspects: readonly number[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads the numbers of the groups that failed in each phase. The method takes one machine as faulty;
 * other outcomes are told apart and not guessed at.
 */
export function replayVerdict(
  plan: ReplayPlan,
  failedHorizontal: readonly number[],
  failedVertical: readonly number[],
): ReplayVerdict {
  const [a, b] = [failedHorizontal.length, failedVertical.length];
  if (a === 0 && b === 0) {
    return { ok: false, reason: "no group failed: the fault does not show at this size" };
  }
  if (a !== 1 || b !== 1) {
    const reason = `${a} groups failed in the first phase and ${b} in the second: not one faulty machine`;
    return { ok: false, reason };
  }
  const [row, column] = [plan.horizontal[failedHorizontal[0]!], plan.vertical[failedVertical[0]!]];
  if (row === undefined || column === undefined) {
    throw new TriremeError(
      "REPLAY",
      `groups ${failedHorizontal[0]} and ${failedVertical[0]} failed; groups are 0..${plan.groups - 1}`,
    );
  }
  const suspects = row.filter((machine) => column.includes(machine));
  if (suspects.length > 0) return { ok: true, suspects };
  const reason = `groups ${failedHorizontal[0]} and ${failedVertical[0]} share no machine: not one faulty machine`;
  return { ok: false, reason };
}
