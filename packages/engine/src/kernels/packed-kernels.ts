/** Kernels of weights in fewer bits; conventions as those of `Kernels`. */
export interface PackedKernels {
  /**
   * out[n] = table[code] * scales[i / 64] for codes of 4 bits, the first of a byte in its upper half;
   * `table` has 16 numbers. The last block may be shorter.
   */
  unpackNf4(codes: number, scales: number, table: number, out: number, n: number): void;
  /**
   * out[n] = table[codes[i]] * groups[(first + i) / 256] + offset: scales in 8 bits, of which the one at
   * `codes` has place `first` among all; `table` has 256 numbers.
   */
  unpackScales(
    codes: number,
    first: number,
    groups: number,
    offset: number,
    table: number,
    out: number,
    n: number,
  ): void;
  /** out[rows, cols] = codes * scales[row] / 127 for signed codes of 8 bits. */
  unpackInt8(codes: number, scales: number, out: number, rows: number, cols: number): void;
}
