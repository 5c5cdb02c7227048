/** SwiGLU (Shazeer 2020): y = silu(gate) * up, from one matrix whose rows are gate, then up. */

import { exp4, loadPartial, storePartial } from "./vector-math";

/** 1 / (1 + exp(-x)) of each lane. */
// @ts-ignore: decorator
@inline
function sigmoid4(x: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(x))));
}

// @ts-ignore: decorator
@inline
function swiglu4(gate: v128, up: v128): v128 {
  return f32x4.mul(f32x4.mul(gate, sigmoid4(gate)), up);
}

/** y[rows, width] = silu(gateUp[:, :width]) * gateUp[:, width:]. */
export function swigluForward(gateUp: usize, y: usize, rows: i32, width: i32): void {
  const end = (<usize>(width & -4)) << 2;
  const tail = width & 3;
  const stride = (<usize>width) << 2;
  for (let row = 0; row < rows; row++) {
    const up = gateUp + stride;
    let at: usize = 0;
    for (; at < end; at += 16)
      v128.store(y + at, swiglu4(v128.load(gateUp + at), v128.load(up + at)));
    if (tail) {
      storePartial(
        y + at,
        swiglu4(loadPartial(gateUp + at, tail), loadPartial(up + at, tail)),
        tail,
      );
    }
    gateUp += 2 * stride;
    y += stride;
  }
}

/** d silu / d gate = s (1 + gate (1 - s)) with s = sigmoid(gate). */
// @ts-ignore: decorator
@inline
function siluSlope4(gate: v128, s: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.mul(s, f32x4.add(one, f32x4.mul(gate, f32x4.sub(one, s))));
}

/** Writes dGateUp[rows, 2 * width]; it may be gateUp. */
export function swigluBackward(
  gateUp: usize,
  dy: usize,
  dGateUp: usize,
  rows: i32,
  width: i32,
): void {
  const end = (<usize>(width & -4)) << 2;
  const tail = width & 3;
  const stride = (<usize>width) << 2;
  for (let row = 0; row < rows; row++) {
    const upRow = gateUp + stride;
    const dUpRow = dGateUp + stride;
    let at: usize = 0;
    for (; at < end; at += 16) {
      const gate = v128.load(gateUp + at);
      const up = v128.load(upRow + at);
      const d = v128.load(dy + at);
      const s = sigmoid4(gate);
      v128.store(dGateUp + at, f32x4.mul(f32x4.mul(d, up), siluSlope4(gate, s)));
      v128.store(dUpRow + at, f32x4.mul(d, f32x4.mul(gate, s)));
    }
    if (tail) {
      const gate = loadPartial(gateUp + at, tail);
      const up = loadPartial(upRow + at, tail);
      const d = loadPartial(dy + at, tail);
      const s = sigmoid4(gate);
      storePartial(dGateUp + at, f32x4.mul(f32x4.mul(d, up), siluSlope4(gate, s)), tail);
      storePartial(dUpRow + at, f32x4.mul(d, f32x4.mul(gate, s)), tail);
    }
    gateUp += 2 * stride;
    dGateUp += 2 * stride;
    dy += stride;
  }
}
