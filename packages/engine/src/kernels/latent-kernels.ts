/** Kernels of latent attention; conventions as those of `Kernels`. */
export interface LatentKernels {
  /**
   * Rotary position embedding, in place, of `width` elements of each of `heads` heads, which begin
   * `headStride` elements apart, of each row of x[batch * sequence, stride]: the pair (2i, 2i + 1) turns
   * by position * base^(-2i / width) (the layout of DeepSeek's weights), -1 turns back. Row s of a
   * sequence has position `first` + s. `width` is even; positions stay below 1e8.
   */
  rotaryPairs(
    x: number,
    batch: number,
    sequence: number,
    heads: number,
    stride: number,
    headStride: number,
    width: number,
    base: number,
    direction: 1 | -1,
    first: number,
  ): void;
}
