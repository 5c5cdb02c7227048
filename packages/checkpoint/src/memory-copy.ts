/**
 * Copies of every step in memory (ByteRobust, SOSP 2025): each rank's state is kept in its own host's
 * memory and in its peer's, in two buffers, so that the copy being written never replaces the last whole
 * one. Ranks finish their copies at different times, therefore a buffer is given up only once the next
 * step is known to be whole on every rank (agreed on beside the gradient norm): at any moment some step
 * is whole everywhere.
 */
import { TriremeError } from "@trireme/core";

/** Two buffers for copies of one rank's state. */
export interface CopyBuffers {
  /** Step whose whole copy each buffer holds; undefined where it holds none. */
  readonly whole: readonly [number | undefined, number | undefined];
  /** The copy being written. */
  readonly writing: { readonly buffer: 0 | 1; readonly step: number } | undefined;
}

/** Two empty buffers. */
export const emptyBuffers: CopyBuffers = { whole: [undefined, undefined], writing: undefined };

/**
 * Begins the copy of a step in the buffer that can be spared: an empty one, or the one whose step is
 * before `agreed`, the newest step known to be whole on every rank (-1: none). Undefined where there is
 * none: the optimizer waits. Throws `CHECKPOINT` while a copy is being written, or for a step not newer.
 */
export function beginCopy(
  buffers: CopyBuffers,
  step: number,
  agreed: number,
): CopyBuffers | undefined {
  const { whole, writing } = buffers;
  if (writing !== undefined) {
    throw new TriremeError(
      "CHECKPOINT",
      `the copy of step ${step} may not begin: that of step ${writing.step} is being written`,
    );
  }
  const newest = Math.max(whole[0] ?? -1, whole[1] ?? -1);
  if (!Number.isSafeInteger(step) || step <= newest) {
    throw new TriremeError("CHECKPOINT", `step ${step} is not after ${newest}, which is copied`);
  }
  const spare = ([0, 1] as const).find((i) => (whole[i] ?? -1) < agreed || whole[i] === undefined);
  if (spare === undefined) return undefined;
  const kept: CopyBuffers["whole"] = spare === 0 ? [undefined, whole[1]] : [whole[0], undefined];
  return { whole: kept, writing: { buffer: spare, step } };
}

/** The copy being written is whole. Throws `CHECKPOINT` where none is. */
export function endCopy({ whole, writing }: CopyBuffers): CopyBuffers {
  if (writing === undefined) throw new TriremeError("CHECKPOINT", "no copy is being written");
  const { buffer, step } = writing;
  return { whole: buffer === 0 ? [step, whole[1]] : [whole[0], step], writing: undefined };
}

/** A whole copy of a rank's state that is in a host's memory. */
export interface MemoryCopy {
  readonly rank: number;
  readonly step: number;
  readonly host: number;
}

/** From which memory each rank comes back; or why it must be storage. */
export type MemoryRecovery =
  | {
      readonly ok: true;
      /** The newest step that every rank has a copy of. */
      readonly step: number;
      /** By rank, the host whose memory has it: its own where that lives. */
      readonly hosts: Int32Array;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * The newest step of which the memories that are left have every rank's state. `homes` gives the host
 * each rank was on, `failed` the hosts whose memory is lost.
 */
export function recoverFromMemory(
  copies: readonly MemoryCopy[],
  homes: readonly number[],
  failed: ReadonlySet<number>,
): MemoryRecovery {
  const byStep = new Map<number, Int32Array>();
  const found = new Map<number, number>();
  const anywhere = new Set<number>();
  for (const { rank, step, host } of copies) {
    if (homes[rank] === undefined) {
      const message = `a copy is of rank ${rank}; there are ranks 0..${homes.length - 1}`;
      throw new TriremeError("CHECKPOINT", message);
    }
    if (failed.has(host)) continue;
    anywhere.add(rank);
    const hosts = byStep.get(step) ?? new Int32Array(homes.length).fill(-1);
    byStep.set(step, hosts);
    if (hosts[rank] === -1) found.set(step, (found.get(step) ?? 0) + 1);
    if (hosts[rank] === -1 || host === homes[rank]) hosts[rank] = host;
  }
  const steps = [...byStep.keys()].filter((step) => found.get(step) === homes.length);
  const step = steps.length === 0 ? undefined : Math.max(...steps);
  const hosts = step === undefined ? undefined : byStep.get(step);
  if (step !== undefined && hosts !== undefined) return { ok: true, step, hosts };
  const lost = homes.findIndex((_, rank) => !anywhere.has(rank));
  return {
    ok: false,
    reason:
      lost === -1
        ? "no step has a copy of every rank's state; load the newest complete checkpoint"
        : `the state of rank ${lost} is in no memory that is left; load the newest complete checkpoint`,
  };
}
