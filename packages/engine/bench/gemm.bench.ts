/**
 * Matrix multiplication and attention on one core: a square product beside TensorFlow.js and beside
 * a scalar loop, the products of a training step, causal attention, the costliest activation.
 */
import { fusedKernels } from "../src/kernels/fused-kernels.ts";
import { createKernels, kernelMemoryDescriptor } from "../src/kernels/kernels.ts";
import { wholeCore } from "../src/operators/attention.ts";
import { loadTensorFlow } from "../test/reference/tensorflow.ts";
import { whole } from "../test/whole-attention.ts";

const giga = 1e9;
const memory = new WebAssembly.Memory(kernelMemoryDescriptor(256e6));
const kernels = createKernels(memory);
// Every operand is a place in one array of numbers that are neither 0 nor denormal.
const values = new Float32Array(memory.buffer);
values.forEach((_, i) => (values[i] = 0.5 + ((i * 7919) % 1024) / 1024));
const place = (index: number): number => index * 32e6;
const [a, b, c, workspace] = [place(1), place(2), place(3), place(4)];

function product(
  m: number,
  n: number,
  k: number,
  transA: 0 | 1 = 0,
  transB: 0 | 1 = 0,
): () => void {
  const [lda, ldb] = [transA ? m : k, transB ? k : n];
  return () => {
    kernels.gemm(transA, transB, m, n, k, 1, a, lda, b, ldb, 0, c, n, workspace);
  };
}

/** Plain TypeScript at its best: no vectors, but 4 x 2 sums in registers. */
function scalarProduct(n: number): () => void {
  const matrix = (): Float32Array => new Float32Array(n * n).fill(0.5);
  const [x, y, z] = [matrix(), matrix(), matrix()];
  return () => {
    for (let i = 0; i < n; i += 4) {
      for (let j = 0; j < n; j += 2) {
        let [s00, s01, s10, s11, s20, s21, s30, s31] = [0, 0, 0, 0, 0, 0, 0, 0];
        for (let p = 0, at = i * n, below = j; p < n; p++, at++, below += n) {
          const [left, right] = [y[below]!, y[below + 1]!];
          s00 += x[at]! * left;
          s01 += x[at]! * right;
          s10 += x[at + n]! * left;
          s11 += x[at + n]! * right;
          s20 += x[at + 2 * n]! * left;
          s21 += x[at + 2 * n]! * right;
          s30 += x[at + 3 * n]! * left;
          s31 += x[at + 3 * n]! * right;
        }
        z.set([s00, s01], i * n + j);
        z.set([s10, s11], (i + 1) * n + j);
        z.set([s20, s21], (i + 2) * n + j);
        z.set([s30, s31], (i + 3) * n + j);
      }
    }
  };
}

/** The same product by TensorFlow.js on its WebAssembly backend, one thread in Node. */
function tensorflowProduct(m: number, n: number, k: number): () => Promise<void> {
  let multiply: (() => void) | undefined;
  return async () => {
    if (multiply === undefined) {
      const tf = await loadTensorFlow();
      const [x, y] = [tf.randomNormal([m, k]), tf.randomNormal([k, n])];
      multiply = () => {
        tf.matMul(x, y).dispose();
      };
    }
    multiply();
  };
}

const size = 512;
const square = product(size, size, size);

/** The square product with fused multiply-adds, where the JavaScript engine has them. */
function fusedSquare(): (() => void) | undefined {
  const found = fusedKernels(memory);
  if (!found.ok) return undefined;
  const { gemm } = found.backend;
  return () => {
    gemm(0, 0, size, size, size, 1, a, size, b, size, 0, c, size, workspace);
  };
}

/** Least CPU seconds of a call, by samples of 20 ms in turn with each other: a busy machine slows both. */
async function leastSeconds(calls: readonly (() => unknown)[]): Promise<number[]> {
  const least = calls.map(() => Infinity);
  for (let round = 0; round < 10; round++) {
    for (const [i, call] of calls.entries()) {
      const begin = process.cpuUsage();
      let [count, seconds] = [0, 0];
      for (; seconds < 0.02; count++) {
        await call();
        const { user, system } = process.cpuUsage(begin);
        seconds = (user + system) / 1e6;
      }
      // The first round warms up.
      if (round > 0) least[i] = Math.min(least[i]!, seconds / count);
    }
  }
  return least;
}

/** How many times as fast our square product is. */
async function speedOver(theirs: () => unknown): Promise<number | undefined> {
  try {
    const [mine, other] = await leastSeconds([square, theirs]);
    return other! / mine!;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** The products of one transformer layer of width 256 over 2,048 tokens: each linear layer, thrice. */
const tokens = 2048;
const layers: readonly (readonly [number, number])[] = [
  [768, 256],
  [256, 256],
  [1024, 256],
  [256, 1024],
];
const layerProducts = layers.flatMap(([outputs, inputs]) => [
  product(tokens, outputs, inputs, 0, 1),
  product(tokens, inputs, outputs, 0, 0),
  product(outputs, inputs, tokens, 1, 0),
]);
const layerFlops = layers.reduce(
  (sum, [outputs, inputs]) => sum + 6 * tokens * outputs * inputs,
  0,
);

// Batch 16, 6 heads, sequence 128, head size 64; a causal score is counted once per visible key.
const core = wholeCore(kernels, whole(16, 6, 6, 128, 64), () => workspace);
const attentionFlops = 4 * 16 * 6 * ((128 * 129) / 2) * 64;
const [lse, dout, dqkv] = [place(5), place(6), place(7)];

const elements = 1 << 20;

export const benchmarks = [
  {
    id: "engine/gemm-512",
    what: "f32 product of two 512 x 512 matrices on one core",
    unit: "GFLOP/s",
    better: "higher",
    target: 28,
    amount: (2 * size ** 3) / giga,
    time: square,
    peer: { name: "@tensorflow/tfjs-backend-wasm", time: tensorflowProduct(size, size, size) },
  },
  {
    id: "engine/gemm-512-over-tensorflow",
    what: "speed over TensorFlow.js on its WebAssembly backend, the same product",
    unit: "ratio",
    better: "higher",
    target: 0.85,
    measure: (): Promise<number | undefined> => speedOver(tensorflowProduct(size, size, size)),
  },
  {
    id: "engine/gemm-512-over-scalar",
    what: "speed over scalar TypeScript with 4 x 2 sums in registers, the same product",
    unit: "ratio",
    better: "higher",
    target: 7,
    measure: (): Promise<number | undefined> => speedOver(scalarProduct(size)),
  },
  {
    id: "engine/gemm-512-fused",
    what: "the same product with fused multiply-adds (relaxed SIMD)",
    unit: "GFLOP/s",
    better: "higher",
    target: null,
    measure: async (): Promise<number | undefined> => {
      const fused = fusedSquare();
      return fused && (2 * size ** 3) / giga / (await leastSeconds([fused]))[0]!;
    },
  },
  {
    id: "engine/gemm-skinny",
    what: "f32 product of 1,024 x 96 by 96 x 96, a small model's projection, on one core",
    unit: "GFLOP/s",
    better: "higher",
    target: 28,
    amount: (2 * 1024 * 96 * 96) / giga,
    time: product(1024, 96, 96),
    peer: { name: "@tensorflow/tfjs-backend-wasm", time: tensorflowProduct(1024, 96, 96) },
  },
  {
    id: "engine/gemm-layer",
    what: "the forward and backward products of a 256-wide transformer layer over 2,048 tokens",
    unit: "GFLOP/s",
    better: "higher",
    target: 28,
    amount: layerFlops / giga,
    time: (): void => {
      for (const multiply of layerProducts) multiply();
    },
  },
  {
    id: "engine/attention-forward",
    what: "causal attention of 16 x 6 heads, 128 tokens, head size 64; visible scores counted only",
    unit: "GFLOP/s",
    better: "higher",
    target: 10,
    amount: attentionFlops / giga,
    time: (): void => {
      core.forward(a, b, lse);
    },
  },
  {
    id: "engine/attention-backward",
    what: "its backward pass, five products for each score where the forward has two",
    unit: "GFLOP/s",
    better: "higher",
    target: 10,
    amount: (2.5 * attentionFlops) / giga,
    before: (): void => {
      core.forward(a, b, lse);
    },
    time: (): void => {
      core.backward(a, b, lse, dout, dqkv);
    },
  },
  {
    id: "engine/gelu",
    what: "GELU of 2^20 values on one core",
    unit: "elements/s",
    better: "higher",
    target: 0.5e9,
    amount: elements,
    time: (): void => {
      kernels.geluForward(a, c, elements);
    },
  },
];
