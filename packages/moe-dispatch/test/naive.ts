/** Slow, obvious forms of what the package does fast, and finite differences. */
import { createRng } from "@trireme/core";

/** Random doubles from a normal law. */
export function normals(length: number, seed: number): Float64Array {
  const rng = createRng(seed);
  return Float64Array.from({ length }, () => rng.normal());
}

/** Indices of the k largest, lowest index first among equals, by sorting. */
export function naiveTopK(row: readonly number[], k: number): number[] {
  return row
    .map((value, e) => ({ value, e }))
    .filter(({ value }) => value !== -Infinity)
    .sort((a, b) => b.value - a.value || a.e - b.e)
    .slice(0, k)
    .map(({ e }) => e);
}

/** Random different experts per token; with `holes`, some slots and tokens have none. */
export function randomIds(o: {
  tokens: number;
  topK: number;
  experts: number;
  seed: number;
  holes?: boolean;
}): Int32Array {
  const rng = createRng(o.seed);
  const ids = new Int32Array(o.tokens * o.topK);
  for (let t = 0; t < o.tokens; t++) {
    const left = Array.from({ length: o.experts }, (_, e) => e);
    const empty = o.holes === true && rng.integer(5) === 0;
    for (let j = 0; j < o.topK; j++) {
      const none = empty || (o.holes === true && rng.integer(7) === 0);
      ids[t * o.topK + j] = none ? -1 : left.splice(rng.integer(left.length), 1)[0]!;
    }
  }
  return ids;
}

/** Central differences of `f` at `x`, one element after the other. */
export function differences(
  x: Float64Array,
  f: (x: Float64Array) => number,
  step = 1e-6,
): Float64Array {
  return x.map((_, i) => {
    const [up, down] = [x.slice(), x.slice()];
    up[i]! += step;
    down[i]! -= step;
    return (f(up) - f(down)) / (2 * step);
  });
}

/** Greatest absolute difference of two arrays. */
export function farthest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Infinity;
  let most = 0;
  for (let i = 0; i < a.length; i++) most = Math.max(most, Math.abs(a[i]! - b[i]!));
  return most;
}

/** Cuts a flat array into rows. */
export function rows(flat: ArrayLike<number>, width: number): number[][] {
  const all = Array.from(flat);
  return Array.from({ length: all.length / width }, (_, i) =>
    all.slice(i * width, (i + 1) * width),
  );
}

/** Sum of products; without `b`, sum. */
export function dot(a: ArrayLike<number>, b?: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * (b?.[i] ?? 1);
  return sum;
}
