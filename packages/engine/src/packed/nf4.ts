/**
 * NF4 (Dettmers et al., QLoRA, 2023): 4 bits are the place of a number among the quantiles of a normal
 * distribution, scaled by the greatest magnitude of each block of 64.
 */

/** Numbers that share a scale. */
export const nf4Block = 64;

/** The 16 numbers (appendix E). */
export const nf4Codebook: Float32Array<ArrayBuffer> = Float32Array.of(
  -1.0,
  -0.6961928009986877,
  -0.5250730514526367,
  -0.39491748809814453,
  -0.28444138169288635,
  -0.18477343022823334,
  -0.09105003625154495,
  0.0,
  0.07958029955625534,
  0.16093020141124725,
  0.24611230194568634,
  0.33791524171829224,
  0.44070982933044434,
  0.5626170039176941,
  0.7229568362236023,
  1.0,
);

/** Codes, two to a byte with the first in its upper half, and the scale of each block. */
export interface Nf4 {
  readonly codes: Uint8Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
}

/** The nearest codes of all numbers; the last block may be shorter. */
export function toNf4(values: Float32Array): Nf4 {
  const { length } = values;
  const codes = new Uint8Array(Math.ceil(length / 2));
  const scales = new Float32Array(Math.ceil(length / nf4Block));
  for (let start = 0, block = 0; start < length; start += nf4Block, block++) {
    const end = Math.min(length, start + nf4Block);
    let greatest = 0;
    for (let i = start; i < end; i++) greatest = Math.max(greatest, Math.abs(values[i]!));
    scales[block] = greatest;
    const factor = Math.fround(1 / Math.max(greatest, 1e-38));
    for (let i = start; i < end; i++) {
      const code = nearest(nf4Codebook, Math.fround(values[i]! * factor));
      codes[i >> 1]! |= i % 2 === 0 ? code << 4 : code;
    }
  }
  return { codes, scales };
}

/** Place of the number of an ascending list that is nearest to x, the lower of two. */
export function nearest(list: Float32Array, x: number): number {
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    const bound = Math.fround(Math.fround(list[middle]! + list[middle + 1]!) / 2);
    if (x <= bound) high = middle;
    else low = middle + 1;
  }
  return low;
}
