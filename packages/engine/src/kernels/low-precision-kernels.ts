/** Kernels of numbers of fewer bits; conventions as those of `Kernels`. */
export interface LowPrecisionKernels {
  /** Greatest |x| of n elements; 0 for none. */
  absMax(x: number, n: number): number;
  /**
   * out[n] = round(x * scale) / scale, to numbers of fewer bits: `step` is their last digit relative to
   * the power of two, `least` the smallest power, `largest` the largest number. out may be x.
   */
  roundTo(
    x: number,
    out: number,
    n: number,
    scale: number,
    step: number,
    least: number,
    largest: number,
  ): void;
  /** The same for each block of up to `block` elements of a row, its greatest scaled to `largest`. */
  roundBlocksTo(
    x: number,
    out: number,
    rows: number,
    cols: number,
    block: number,
    step: number,
    least: number,
    largest: number,
  ): void;
  /** out[n], 16 bits each, = x rounded to BF16. */
  toBf16(x: number, out: number, n: number): void;
  /** out[n] = x[n], 16 bits each. */
  fromBf16(x: number, out: number, n: number): void;
}
