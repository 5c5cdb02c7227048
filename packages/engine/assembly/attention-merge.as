/**
 * Attention to some keys merged with attention to others (Liu et al., Ring Attention, 2023; the
 * online softmax of Milakov and Gimelshein 2018 between blocks): outputs are weighted by the shares
 * of their sums of exponentials.
 */

import { exp64, log64 } from "./scalar-math";

/**
 * out[queries, heads * headDim] and lse[heads, queries] become those of both; -Infinity marks a
 * query that has seen nothing.
 */
export function attentionMerge(
  part: usize,
  partLse: usize,
  out: usize,
  lse: usize,
  heads: i32,
  queries: i32,
  headDim: i32,
): void {
  const headBytes = (<usize>headDim) << 2;
  const rowBytes = <usize>heads * headBytes;
  for (let head = 0; head < heads; head++) {
    for (let query = 0; query < queries; query++) {
      const at = (<usize>(head * queries + query)) << 2;
      const ours = <f64>load<f32>(lse + at);
      const theirs = <f64>load<f32>(partLse + at);
      const top = max<f64>(ours, theirs);
      // -Infinity - -Infinity is no number: where neither has seen a key, nothing changes.
      if (theirs == -Infinity) continue;
      const keep = exp64(max<f64>(-700, ours - top));
      const add = exp64(max<f64>(-700, theirs - top));
      const place = <usize>query * rowBytes + <usize>head * headBytes;
      mix(part + place, out + place, <f32>(add / (keep + add)), <f32>(keep / (keep + add)), headDim);
      store<f32>(lse + at, <f32>(top + log64(keep + add)));
    }
  }
}

/** y = add * x + keep * y. */
function mix(x: usize, y: usize, add: f32, keep: f32, n: i32): void {
  const adds = f32x4.splat(add);
  const keeps = f32x4.splat(keep);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) {
    const sum = f32x4.add(
      f32x4.mul(adds, v128.load(x + at)),
      f32x4.mul(keeps, v128.load(y + at)),
    );
    v128.store(y + at, sum);
  }
  for (const last = (<usize>n) << 2; at < last; at += 4) {
    store<f32>(y + at, add * load<f32>(x + at) + keep * load<f32>(y + at));
  }
}
