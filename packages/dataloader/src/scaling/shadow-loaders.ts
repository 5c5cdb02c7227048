/**
 * Which source processes get a hot standby. A shadow holds the same state as its primary and takes over
 * at once, where a new process would first read it all; memory is what it costs. (OVERLORD,
 * arXiv:2504.09844, shadow loaders.)
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";

/** A process that holds source loaders. */
export interface StandbyCandidate {
  /** Time to start it anew: read its state, and replay to where it stood. */
  readonly recovery: Seconds;
  /** Time to hand over to a shadow. */
  readonly takeover: Seconds;
  /** Failures expected in a second. */
  readonly failureRate: number;
  /** Memory of a shadow. */
  readonly bytes: Bytes;
}

/** Which processes have a shadow, and what it is worth. */
export interface ShadowPlan {
  readonly shadowed: readonly number[];
  readonly bytes: Bytes;
  /** Share of time that training is expected to wait for failed loaders, without and with. */
  readonly waitingWithout: number;
  readonly waitingWith: number;
  /** Gain in the share of effective training time, at least 1. */
  readonly speedup: number;
}

/**
 * Shadows within a budget of memory: those first that save the most waiting for a byte. A failed loader
 * stops the whole run, so waits add up; a wait that the batches made ahead cover does not count.
 */
export function planShadows(
  candidates: readonly StandbyCandidate[],
  budget: Bytes,
  /** Time that batches made ahead last. */
  buffered: Seconds = 0,
): ShadowPlan {
  if (!(budget >= 0))
    throw new TriremeError("SHADOW", `a budget of ${budget} bytes; use 0 or more`);
  if (!(buffered >= 0))
    throw new TriremeError("SHADOW", `batches made ahead for ${buffered} s; use 0 or more`);
  const stall = (seconds: Seconds): Seconds => Math.max(0, seconds - buffered);
  const waiting = candidates.map(({ recovery, takeover, failureRate, bytes }, i) => {
    for (const [name, value] of Object.entries({ recovery, takeover, failureRate, bytes })) {
      if (!(value >= 0 && value < Infinity))
        throw new TriremeError("SHADOW", `process ${i} has ${name} ${value}; use a finite number`);
    }
    return { cold: stall(recovery) * failureRate, hot: stall(takeover) * failureRate, bytes };
  });
  const worth = (i: number): number => {
    const { cold, hot, bytes } = waiting[i]!;
    return (cold - hot) / Math.max(1, bytes);
  };
  const shadowed: number[] = [];
  let bytes = 0;
  for (const i of candidates.map((_, at) => at).sort((a, b) => worth(b) - worth(a) || a - b)) {
    if (worth(i) <= 0 || bytes + candidates[i]!.bytes > budget) continue;
    shadowed.push(i);
    bytes += candidates[i]!.bytes;
  }
  shadowed.sort((a, b) => a - b);
  const sum = (hot: (i: number) => boolean): number =>
    waiting.reduce((total, wait, i) => total + (hot(i) ? wait.hot : wait.cold), 0);
  // Seconds lost for each second of training, as a share of all time.
  const share = (lost: number): number => lost / (1 + lost);
  const waitingWithout = share(sum(() => false));
  const waitingWith = share(sum((i) => shadowed.includes(i)));
  return {
    shadowed,
    bytes,
    waitingWithout,
    waitingWith,
    speedup: (1 - waitingWith) / (1 - waitingWithout),
  };
}
