import type { Tape } from "../tape/tape.ts";

/** A pointer to a copy in the rank's memory that lives as long as the tape; 4-byte elements alike. */
export function place(tape: Tape, values: Int32Array | Float32Array): number {
  const tensor = tape.allocate([Math.max(1, values.length)]);
  const { buffer } = tape.pool.memory;
  const target =
    values instanceof Int32Array
      ? new Int32Array(buffer, tensor.pointer, values.length)
      : new Float32Array(buffer, tensor.pointer, values.length);
  target.set(values);
  return tensor.pointer;
}

/** Inverse of a permutation. */
export function inverse(order: Int32Array): Int32Array {
  const out = new Int32Array(order.length);
  order.forEach((to, from) => {
    out[to] = from;
  });
  return out;
}
