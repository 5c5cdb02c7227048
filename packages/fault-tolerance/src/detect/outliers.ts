/** Values far from the rest: median + k · MAD, over values side by side and over a window in time. */
import { TriremeError, median as middle } from "@trireme/core";

/** Makes the median absolute deviation the standard deviation of normal values. */
const normal = 1.4826;

/**
 * Values further than k times the scaled median absolute deviation from the median, by index.
 * With a zero deviation any value that differs from the median is one; NaN always is.
 * @throws TriremeError "OUTLIERS" when k is not above 0.
 */
export function outliers(values: ArrayLike<number>, k = 5): number[] {
  checkFactor(k);
  const { median, deviation } = spread(Array.from(values));
  return Array.from(values).flatMap((x, i) => (Math.abs(x - median) <= k * deviation ? [] : [i]));
}

export interface OutlierWatchOptions {
  /** Values the threshold is taken from; 64 by default. */
  readonly window?: number;
  /** Scaled deviations above the median from which a value is an outlier; 6 by default. */
  readonly k?: number;
  /** Values seen before any is judged; 8 by default. */
  readonly least?: number;
}

/**
 * A threshold that follows a metric (gradient norm, update RMS): median + k · MAD of the last values.
 * Outliers are not taken into the window, so that a burst of them does not become the norm; only
 * values above count, for these metrics are harmless when small.
 */
export class OutlierWatch {
  readonly #options: Required<OutlierWatchOptions>;
  readonly #recent: number[] = [];

  /** @throws TriremeError "OUTLIERS" on a k not above 0 or a window smaller than `least`. */
  constructor(options: OutlierWatchOptions = {}) {
    this.#options = { window: 64, k: 6, least: 8, ...options };
    const { window, k, least } = this.#options;
    checkFactor(k);
    if (!(Number.isInteger(least) && least >= 1 && window >= least)) {
      throw new TriremeError(
        "OUTLIERS",
        `a window of ${window} values cannot hold the ${least} needed first; use whole numbers from 1`,
      );
    }
  }

  /** The value above which the next one is an outlier; Infinity while too few have been seen. */
  get threshold(): number {
    if (this.#recent.length < this.#options.least) return Infinity;
    const { median, deviation } = spread(this.#recent);
    // A thousandth of the median at least: a metric that stood still may move in its last digits.
    return median + this.#options.k * Math.max(deviation, Math.abs(median) / 1000);
  }

  /** Takes a value; whether it is an outlier of those before it. */
  observe(value: number): boolean {
    if (!Number.isFinite(value) || value > this.threshold) return true;
    this.#recent.push(value);
    if (this.#recent.length > this.#options.window) this.#recent.shift();
    return false;
  }

  /** Forgets all values: after a recovery the metric may stand elsewhere. */
  reset(): void {
    this.#recent.length = 0;
  }
}

function spread(values: readonly number[]): { median: number; deviation: number } {
  // What is not finite is an outlier itself, and must not shift what the others are held against.
  const finite = values.filter((x) => Number.isFinite(x));
  const median = middle(finite);
  return { median, deviation: normal * middle(finite.map((x) => Math.abs(x - median))) };
}

function checkFactor(k: number): void {
  if (!(k > 0)) throw new TriremeError("OUTLIERS", `k = ${k} must be above 0; 5 is usual`);
}
