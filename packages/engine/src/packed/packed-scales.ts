/**
 * Scales in 8 bits, which QLoRA (2023, section 3) calls double quantisation: less their mean, each is the
 * place of a number of the dynamic map, scaled by the greatest magnitude of each 256 of them.
 */
import { nearest } from "./nf4.ts";

/** Scales that share one of their own. */
const group = 256;

/**
 * The signed dynamic map (Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2022, section
 * 2.2) in ascending order: of each of seven decades below 1, doubly many numbers than of the one before.
 */
export const dynamicMap: Float32Array<ArrayBuffer> = makeDynamicMap();

function makeDynamicMap(): Float32Array<ArrayBuffer> {
  const numbers = [0, 1];
  const decades = 7;
  for (let decade = 0; decade < decades; decade++) {
    const count = 2 ** decade;
    const bound = (i: number): number => Math.fround(0.1 + (0.9 * i) / count);
    for (let i = 0; i < count; i++) {
      const mean = Math.fround(Math.fround(bound(i) + bound(i + 1)) / 2);
      const number = 10 ** (decade + 1 - decades) * mean;
      numbers.push(number, -number);
    }
  }
  return Float32Array.from(numbers).sort();
}

/** Scales in 8 bits: `map[codes[i]] · groups[i / 256] + offset`. */
export interface PackedScales {
  readonly codes: Uint8Array<ArrayBuffer>;
  readonly groups: Float32Array<ArrayBuffer>;
  readonly offset: number;
}

export function packScales(scales: Float32Array): PackedScales {
  const offset = Math.fround(scales.reduce((sum, scale) => sum + scale, 0) / scales.length);
  const codes = new Uint8Array(scales.length);
  const groups = new Float32Array(Math.ceil(scales.length / group));
  for (let g = 0; g < groups.length; g++) {
    const some = scales
      .subarray(g * group, (g + 1) * group)
      .map((scale) => Math.fround(scale - offset));
    const greatest = some.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
    groups[g] = greatest;
    const factor = Math.fround(1 / Math.max(greatest, 1e-38));
    some.forEach((x, i) => {
      codes[g * group + i] = nearest(dynamicMap, Math.fround(x * factor));
    });
  }
  return { codes, groups, offset };
}
