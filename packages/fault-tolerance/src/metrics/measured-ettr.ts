/**
 * Goodput as measured from a run: MegaScale's effective training time rate, and the ETTR of ByteRobust
 * and RSC, cumulative and over a sliding window.
 */
import { TriremeError, type Seconds } from "@trireme/core";

/**
 * MegaScale's effective training time rate: iterations × iteration time / total time.
 * @param steps Iterations that count: those lost and trained again count once.
 * @throws TriremeError "ETTR" on values below 0 or a total that is not above 0.
 */
export function effectiveTrainingTime(steps: number, step: Seconds, total: Seconds): number {
  if (!(steps >= 0 && step >= 0 && total > 0)) {
    throw new TriremeError(
      "ETTR",
      `${steps} steps of ${step} s in ${total} s: use 0 or more, and a total above 0`,
    );
  }
  return (steps * step) / total;
}

/** A span of wall time in which training moved forward; work lost later must not be listed. */
export interface ProductiveSpan {
  readonly start: Seconds;
  readonly end: Seconds;
}

/**
 * Share of [from, to] that the spans cover: ETTR, cumulative when `from` is the start of the run.
 * @throws TriremeError "ETTR" when the window is empty or spans overlap or end before they start.
 */
export function ettrBetween(spans: readonly ProductiveSpan[], from: Seconds, to: Seconds): number {
  if (!(to > from)) {
    throw new TriremeError("ETTR", `[${from}, ${to}] s is empty: ETTR needs from < to`);
  }
  const productive = productiveTime(spans);
  return (productive(to) - productive(from)) / (to - from);
}

/**
 * ETTR over the window that ends at each sample (ByteRobust: 1 h), shorter at the start of the run,
 * which is time 0. Costs the spans once and a search for each sample.
 * @throws TriremeError "ETTR" on a window that is not above 0 or a sample that is not after 0.
 */
export function slidingEttr(
  spans: readonly ProductiveSpan[],
  samples: readonly Seconds[],
  window: Seconds,
): number[] {
  if (!(window > 0)) {
    throw new TriremeError("ETTR", `window = ${window} s must be above 0; 3600 is usual`);
  }
  const productive = productiveTime(spans);
  return samples.map((at) => {
    if (!(at > 0)) throw new TriremeError("ETTR", `sample at ${at} s is not after the start, 0`);
    const from = Math.max(0, at - window);
    return (productive(at) - productive(from)) / (at - from);
  });
}

/** Productive time up to any time, by a search in the running sums of the sorted spans. */
function productiveTime(spans: readonly ProductiveSpan[]): (time: Seconds) => Seconds {
  const sorted = spans.toSorted((a, b) => a.start - b.start);
  const before = new Float64Array(sorted.length + 1);
  for (const [i, { start, end }] of sorted.entries()) {
    if (!(end >= start) || start < (sorted[i - 1]?.end ?? -Infinity)) {
      throw new TriremeError(
        "ETTR",
        `span [${start}, ${end}] s ends before its start or overlaps the one that ends at ${sorted[i - 1]?.end} s`,
      );
    }
    before[i + 1] = before[i]! + (end - start);
  }
  return (time) => {
    let [from, to] = [0, sorted.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (sorted[middle]!.start < time) from = middle + 1;
      else to = middle;
    }
    if (from === 0) return 0;
    const { start, end } = sorted[from - 1]!;
    return before[from - 1]! + Math.min(time, end) - start;
  };
}
