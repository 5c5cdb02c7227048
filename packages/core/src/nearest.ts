/** The nearest legal choice, for error messages: of known names, and of the divisors of a number. */

/** Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, beforeLast[j - 2]! + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}

/**
 * The known name nearest to `name` by edit distance without regard to case; the first of equals.
 * Undefined when none is close: more than a third of the letters (and more than two) would change.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const d = distance(name.toLowerCase(), candidate.toLowerCase());
    if (d < bestDistance) {
      best = candidate;
      bestDistance = d;
    }
  }
  return best;
}

/** The divisor of `n` nearest to `target`, the smaller of equals; 1 when `n` is no positive integer. */
export function nearestDivisor(n: number, target: number): number {
  if (!Number.isSafeInteger(n) || n < 1) return 1;
  let best = 1;
  const consider = (d: number): void => {
    const gain = Math.abs(best - target) - Math.abs(d - target);
    if (gain > 0 || (gain === 0 && d < best)) best = d;
  };
  for (let d = 1; d * d <= n; d++) {
    if (n % d !== 0) continue;
    consider(d);
    consider(n / d);
  }
  return best;
}
