/** The line between points above and points below that is as far from both as it can be, vertically. */

type Point = readonly [x: number, y: number];

/** Slopes are searched for within ±this: clocks of computers are a hundred times better. */
const steepest = 1e-3;

/**
 * The line offset + drift × x with the largest `half` such that all of `above` lie at least that far
 * above it and all of `below` below it; `half` is negative when no line parts them. The distance is a
 * concave function of the drift, so that a search by thirds finds its top; only the hulls matter.
 */
export function largestGap(
  above: readonly Point[],
  below: readonly Point[],
): { readonly offset: number; readonly drift: number; readonly half: number } {
  const lower = hull(above, 1);
  const upper = hull(below, -1);
  // Heights are taken about the middle of the times, where slopes move them least.
  const xs = [...above, ...below].map(([x]) => x);
  const middle = (xs.reduce((a, b) => Math.min(a, b)) + xs.reduce((a, b) => Math.max(a, b))) / 2;
  const floor = (drift: number): number =>
    lower.reduce((least, [x, y]) => Math.min(least, y - drift * (x - middle)), Infinity);
  const ceiling = (drift: number): number =>
    upper.reduce((most, [x, y]) => Math.max(most, y - drift * (x - middle)), -Infinity);
  const gap = (drift: number): number => floor(drift) - ceiling(drift);
  let [low, high] = [-steepest, steepest];
  // (2/3)^120 of the range is below the rounding of its ends.
  for (let step = 0; step < 120; step++) {
    const [a, b] = [low + (high - low) / 3, high - (high - low) / 3];
    if (gap(a) < gap(b)) low = a;
    else high = b;
  }
  // Where the top is flat, as for messages at one time only, the least drift is as good as any.
  const top = (low + high) / 2;
  const drift = gap(0) >= gap(top) ? 0 : top;
  const offset = (floor(drift) + ceiling(drift)) / 2 - drift * middle;
  return { offset, drift, half: gap(drift) / 2 };
}

/** The lower hull of points for sign 1, the upper one for sign -1 (Andrew's monotone chain). */
function hull(points: readonly Point[], sign: 1 | -1): Point[] {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || sign * (a[1] - b[1]));
  const chain: Point[] = [];
  for (const point of sorted) {
    if (chain.length > 0 && chain[chain.length - 1]![0] === point[0]) continue;
    while (chain.length > 1) {
      const [a, b] = [chain[chain.length - 2]!, chain[chain.length - 1]!];
      const turn = (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]);
      if (sign * turn > 0) break;
      chain.pop();
    }
    chain.push(point);
  }
  return chain;
}
