/**
 * One training step of a small MLP in float32 with every dynamic instruction passing through a hook,
 * so that a campaign can strike any of them. X_BI → H_BH = relu(X·W1 + b1) → Y_BO = H·W2 + b2, mean
 * softmax cross-entropy, plain SGD. B batch, I inputs, H hidden, O outputs.
 */
import type { Rng } from "@trireme/core";
import { checkMatmul } from "@trireme/fault-tolerance";

export const [B, I, H, O] = [8, 10, 12, 4];
const rate = 0.1;

export type Hook = (kind: string, value: number) => number;

export interface Weights {
  readonly w1: Float32Array;
  readonly b1: Float32Array;
  readonly w2: Float32Array;
  readonly b2: Float32Array;
}

/** The weights that an updated, end-to-end array holds. */
export function split(all: Float32Array): Weights {
  const [w1, b1, w2] = [I * H, I * H + H, I * H + H + H * O];
  return {
    w1: all.slice(0, w1),
    b1: all.slice(w1, b1),
    w2: all.slice(b1, w2),
    b2: all.slice(w2),
  };
}

export interface Step {
  readonly loss: number;
  /** All gradients, end to end, and the weights after the update. */
  readonly gradient: Float32Array;
  readonly updated: Float32Array;
  /** Whether the checksums of all five products hold. */
  readonly checksums: boolean;
}

export function weights(rng: Rng): Weights {
  const fill = (size: number, scale: number): Float32Array =>
    Float32Array.from({ length: size }, () => scale * rng.normal());
  return { w1: fill(I * H, 0.4), b1: fill(H, 0.1), w2: fill(H * O, 0.4), b2: fill(O, 0.1) };
}

export function step(
  { w1, b1, w2, b2 }: Weights,
  x: Float32Array,
  labels: readonly number[],
  hook: Hook,
  corrupt: (product: Float32Array) => void = () => {},
): Step {
  let checksums = true;
  const product = (a: Float32Array, b: Float32Array, m: number, k: number, n: number) => {
    const c = new Float32Array(m * n);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let l = 0; l < k; l++) {
          sum = hook("fma", Math.fround(sum + a[i * k + l]! * b[l * n + j]!));
        }
        c[i * n + j] = sum;
      }
    }
    corrupt(c);
    if (!checkMatmul(a, b, c, { m, k, n }).ok) checksums = false;
    return c;
  };
  const transpose = (a: Float32Array, rows: number, columns: number): Float32Array =>
    Float32Array.from(
      { length: a.length },
      (_, i) => a[(i % rows) * columns + Math.floor(i / rows)]!,
    );
  const z = product(x, w1, B, I, H).map((v, i) => hook("add", v + b1[i % H]!));
  const h = z.map((v) => hook("max", Math.max(0, v)));
  const y = product(h, w2, B, H, O).map((v, i) => hook("add", v + b2[i % O]!));
  const dy = new Float32Array(B * O);
  let loss = 0;
  for (let i = 0; i < B; i++) {
    const row = y.subarray(i * O, (i + 1) * O);
    const top = row.reduce((a, b) => Math.max(a, b), -Infinity);
    const e = row.map((v) => hook("exp", Math.fround(Math.exp(v - top))));
    const sum = e.reduce((a, b) => a + b, 0);
    for (let o = 0; o < O; o++) {
      const p = hook("div", Math.fround(e[o]! / sum));
      if (labels[i] === o) loss -= Math.log(p) / B;
      dy[i * O + o] = (p - (labels[i] === o ? 1 : 0)) / B;
    }
  }
  const dw2 = product(transpose(h, B, H), dy, H, B, O);
  const dh = product(dy, transpose(w2, H, O), B, O, H);
  const dz = dh.map((v, i) => (z[i]! > 0 ? v : 0));
  const dw1 = product(transpose(x, B, I), dz, I, B, H);
  const columns = (d: Float32Array, width: number): Float32Array => {
    const sums = new Float32Array(width);
    for (const [i, v] of d.entries())
      sums[i % width] = hook("add", Math.fround(sums[i % width]! + v));
    return sums;
  };
  const gradient = join([dw1, columns(dz, H), dw2, columns(dy, O)]);
  const updated = join([w1, b1, w2, b2]).map((w, i) => hook("fma", w - rate * gradient[i]!));
  return { loss, gradient, updated, checksums };
}

function join(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
