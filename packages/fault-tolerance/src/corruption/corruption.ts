/**
 * Corruptions of a tensor, decided first and done after: a plan names words and what becomes of them,
 * so that it can be printed, stored, and done again on the same tensor.
 */
import { TriremeError, type Rng } from "@trireme/core";
import {
  type BitClass,
  type FloatArray,
  type FloatFormat,
  checkFormat,
  drawBit,
  wordsOf,
} from "./bits.ts";

/** How a defect shows in a tensor (gate-level studies find zeroing as often as flips). */
export type CorruptionModel =
  /** One value, one bit of a class. */
  | { readonly kind: "flip"; readonly bits: BitClass }
  /** One value, several distinct bits anywhere. */
  | { readonly kind: "multi-flip"; readonly count: number }
  /** One value becomes +0. */
  | { readonly kind: "zero" }
  /** A bit of a class reads 0 or 1 in a run of values, as from a stuck gate of one lane. */
  | {
      readonly kind: "stuck";
      readonly bits: BitClass;
      readonly value: 0 | 1;
      readonly length: number;
    }
  /** A bit of a class flips in every period-th value: the lane of a warp (32). */
  | { readonly kind: "warp"; readonly bits: BitClass; readonly period: number };

/** The new word is (old & keep) ^ flip, in the values start, start + stride, … */
export interface Corruption {
  readonly format: FloatFormat;
  readonly start: number;
  readonly stride: number;
  readonly count: number;
  /** Unsigned words of the format's width. */
  readonly keep: number;
  readonly flip: number;
}

/**
 * Draws where and what: every place and bit of the class as likely.
 * @param size Values of the tensor.
 * @throws TriremeError "CORRUPTION" on an empty tensor or a count, length or period out of range.
 */
export function drawCorruption(
  model: CorruptionModel,
  size: number,
  format: FloatFormat,
  rng: Rng,
): Corruption {
  const width = format === "float32" ? 32 : 16;
  inRange("size", size, 2 ** 32);
  const all = format === "float32" ? 0xffff_ffff : 0xffff;
  const one = { format, start: 0, stride: 1, count: 1, keep: all, flip: 0 };
  switch (model.kind) {
    case "flip":
      return { ...one, start: rng.integer(size), flip: word(drawBit(format, model.bits, rng)) };
    case "multi-flip": {
      inRange("count", model.count, width);
      let flip = 0;
      // Floyd's sample of distinct bits.
      for (let last = width - model.count; last < width; last++) {
        const bit = word(rng.integer(last + 1));
        flip = (flip | (flip & bit ? word(last) : bit)) >>> 0;
      }
      return { ...one, start: rng.integer(size), flip };
    }
    case "zero":
      return { ...one, start: rng.integer(size), keep: 0 };
    case "stuck": {
      inRange("length", model.length, size);
      const bit = word(drawBit(format, model.bits, rng));
      const start = rng.integer(size - model.length + 1);
      const keep = (all & ~bit) >>> 0;
      return { ...one, start, count: model.length, keep, flip: model.value === 1 ? bit : 0 };
    }
    case "warp": {
      inRange("period", model.period, 2 ** 32);
      const start = rng.integer(Math.min(model.period, size));
      const count = Math.ceil((size - start) / model.period);
      const flip = word(drawBit(format, model.bits, rng));
      return { ...one, start, stride: model.period, count, flip };
    }
  }
}

/**
 * Does a corruption to the values in place.
 * @returns Values whose bits have changed: a stuck bit may have been right already.
 * @throws TriremeError "BITS" when the array cannot hold the format, "CORRUPTION" when it is too short
 * or a start, stride or count is out of range.
 */
export function applyCorruption(values: FloatArray, corruption: Corruption): number {
  const { format, start, stride, count, keep, flip } = corruption;
  checkFormat(values, format);
  if (!Number.isInteger(start) || start < 0) {
    throw new TriremeError("CORRUPTION", `start = ${start}: use an integer from 0 up`);
  }
  inRange("stride", stride, 2 ** 32);
  inRange("count", count, 2 ** 32);
  const last = start + (count - 1) * stride;
  if (last >= values.length) {
    throw new TriremeError(
      "CORRUPTION",
      `value ${last} is to be corrupted, but the tensor has ${values.length}`,
    );
  }
  const words = wordsOf(values);
  let changed = 0;
  for (let i = start; i <= last; i += stride) {
    const old = words[i]!;
    words[i] = (old & keep) ^ flip;
    if (words[i] !== old) changed++;
  }
  return changed;
}

function word(bit: number): number {
  return 2 ** bit;
}

function inRange(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new TriremeError("CORRUPTION", `${name} = ${value}: use an integer of 1..${most}`);
}
