import type { LatentKernels } from "./latent-kernels.ts";
import type { LowPrecisionKernels } from "./low-precision-kernels.ts";
import { kernelModule } from "./module.ts";
import type { OptimizerKernels } from "./optimizer-kernels.ts";
import type { PackedKernels } from "./packed-kernels.ts";
import type { ParallelKernels } from "./parallel-kernels.ts";

/**
 * The kernels of one memory. Pointers are byte offsets into it (unsigned, up to 4 GiB, multiples of
 * 4 bytes), sizes are element counts, matrices are row-major without gaps, everything is float32
 * unless said. No kernel allocates, and none checks its arguments: an offset outside the memory
 * traps (`WebAssembly.RuntimeError`), one inside it is believed. Results are the same bits on every
 * call and host. Operands may not overlap except where a kernel says so.
 */
export interface Kernels
  extends ParallelKernels, LowPrecisionKernels, LatentKernels, OptimizerKernels, PackedKernels {
  /**
   * C[m, n] = alpha * op(A)[m, k] op(B)[k, n] + beta * C; `lda`, `ldb`, `ldc` are the stored row
   * lengths. beta 0 does not read C; alpha 0 does not read A and B. `workspace` is at least
   * `gemmWorkspace(m, n, k)` bytes, best aligned to 64.
   */
  gemm(
    transA: boolean | 0 | 1,
    transB: boolean | 0 | 1,
    m: number,
    n: number,
    k: number,
    alpha: number,
    a: number,
    lda: number,
    b: number,
    ldb: number,
    beta: number,
    c: number,
    ldc: number,
    workspace: number,
  ): void;
  /** Bytes of packing space that `gemm` of this size may write. */
  gemmWorkspace(m: number, n: number, k: number): number;

  /** x[rows, cols] += bias[cols]. */
  addBias(x: number, bias: number, rows: number, cols: number): void;
  /** dbias[cols] += the column sums of dy[rows, cols]. */
  biasGradient(dy: number, dbias: number, rows: number, cols: number): void;

  /** y[rows, cols] = (x - mean) * rstd * gain + bias; writes mean[rows] and rstd[rows]. y may be x. */
  layerNormForward(
    x: number,
    gain: number,
    bias: number,
    y: number,
    mean: number,
    rstd: number,
    rows: number,
    cols: number,
    eps: number,
  ): void;
  /** Writes dx[rows, cols] (which may be dy), adds to dgain[cols] and dbias[cols]. */
  layerNormBackward(
    x: number,
    gain: number,
    mean: number,
    rstd: number,
    dy: number,
    dx: number,
    dgain: number,
    dbias: number,
    rows: number,
    cols: number,
  ): void;
  /** y[rows, cols] = x * rstd * gain with rstd[rows] = 1 / sqrt(mean(x^2) + eps). y may be x. */
  rmsNormForward(
    x: number,
    gain: number,
    y: number,
    rstd: number,
    rows: number,
    cols: number,
    eps: number,
  ): void;
  /** Writes dx[rows, cols] (which may be dy), adds to dgain[cols]. */
  rmsNormBackward(
    x: number,
    gain: number,
    rstd: number,
    dy: number,
    dx: number,
    dgain: number,
    rows: number,
    cols: number,
  ): void;

  /** y[n] = GELU(x), tanh approximation as in GPT-2. y may be x. */
  geluForward(x: number, y: number, n: number): void;
  /** y[n] = GELU(x), and x[n] = GELU'(x): what `multiply` takes a gradient back by. */
  geluSplit(x: number, y: number, n: number): void;
  /** dx[n] = dy * GELU'(x). dx may be dy or x. */
  geluBackward(x: number, dy: number, dx: number, n: number): void;
  /** y[rows, width] = silu(gate) * up; a row of gateUp is `width` gates, then `width` ups. */
  swigluForward(gateUp: number, y: number, rows: number, width: number): void;
  /** Writes dGateUp[rows, 2 * width], which may be gateUp. */
  swigluBackward(gateUp: number, dy: number, dGateUp: number, rows: number, width: number): void;

  /** Bytes that `attendForward` and `attendBackward` of this size may write; `sequence` is that of keys. */
  attentionWorkspace(
    batch: number,
    heads: number,
    kvHeads: number,
    sequence: number,
    headDim: number,
  ): number;

  /**
   * Rotary position embedding, in place, on the first `heads` heads (q and k) of each row of
   * qkv[batch * sequence, stride]: the pair (i, i + headDim / 2) turns by position * base^(-2i / headDim)
   * (the half-split layout of GPT-NeoX and Llama), -1 turns back. Row s of a sequence has position
   * `first` + s (default 0). `headDim` is even; positions stay below 1e8.
   */
  rotary(
    qkv: number,
    batch: number,
    sequence: number,
    heads: number,
    stride: number,
    headDim: number,
    base: number,
    direction: 1 | -1,
    first?: number,
  ): void;

  /**
   * y[batch * sequence, width] = table[token] + positions[s]; `positions` 0 means none. Tokens are
   * int32; one below 0 is in another shard of the table and gives no row of it. The kernel does not
   * know the table's length: the caller has checked the tokens.
   */
  embeddingForward(
    tokens: number,
    positions: number,
    table: number,
    y: number,
    batch: number,
    sequence: number,
    width: number,
  ): void;
  /** dtable[token] += dy and dpositions[s] += dy (`dpositions` 0 means none), in the batch's order. */
  embeddingBackward(
    tokens: number,
    dy: number,
    dtable: number,
    dpositions: number,
    batch: number,
    sequence: number,
    width: number,
  ): void;

  /**
   * losses[rows] = logsumexp(row) - row[target], and logits[rows, vocab] overwritten by
   * scale * (softmax - onehot). Targets are int32; below 0 the row is ignored (loss 0, gradient 0),
   * at or above `vocab` its loss is NaN.
   */
  crossEntropy(
    logits: number,
    targets: number,
    losses: number,
    rows: number,
    vocab: number,
    scale: number,
  ): void;
  /** The losses of `crossEntropy`; logits stay as they are. */
  crossEntropyLoss(
    logits: number,
    targets: number,
    losses: number,
    rows: number,
    vocab: number,
  ): void;

  /** out[n] = x + y. out may be x or y. */
  add(x: number, y: number, out: number, n: number): void;
  /** out[n] = x * y. out may be x or y. */
  multiply(x: number, y: number, out: number, n: number): void;
  /** into[n] += x. */
  accumulate(x: number, into: number, n: number): void;
  /** out[n] = x; the two may overlap. */
  copy(x: number, out: number, n: number): void;
  /** Copies `rows` rows of `cols`; strides are elements from row to row. */
  copyRows(
    from: number,
    fromStride: number,
    to: number,
    toStride: number,
    rows: number,
    cols: number,
  ): void;
  /** x[n] *= factor. */
  scale(x: number, factor: number, n: number): void;
  /** x[n] = value. */
  fill(x: number, value: number, n: number): void;
  /** Sum of x^2 over n elements, accumulated in float64. */
  sumSquares(x: number, n: number): number;
}

/** Bytes of a WebAssembly page. */
export const pageBytes = 65_536;

/** 4 GiB, all that 32-bit offsets reach. */
const maximumPages = 65_536;

/**
 * A descriptor for a shared memory that the kernels accept: it begins with room for `bytes` and may
 * grow to 4 GiB.
 */
export function kernelMemoryDescriptor(bytes: number): {
  initial: number;
  maximum: number;
  shared: true;
} {
  return {
    initial: Math.max(1, Math.ceil(bytes / pageBytes)),
    maximum: maximumPages,
    shared: true,
  };
}

let compiled: WebAssembly.Module | undefined;

/**
 * Instantiates the kernels over a shared memory, synchronously; the module is compiled once per
 * thread. Several instances, in one thread or in many, may work on disjoint parts of one memory.
 */
export function createKernels(memory: WebAssembly.Memory): Kernels {
  compiled ??= new WebAssembly.Module(decodeBase64(kernelModule));
  const instance = new WebAssembly.Instance(compiled, { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- assembly/index.ts exports just these
  return instance.exports as unknown as Kernels;
}

/** The bytes of a checked-in module. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
