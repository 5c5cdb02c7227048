/**
 * What PyTorch runs beside the products and the softmax when attention is written out: `attention_pytorch` of flash-attention's
 * benchmarks/benchmark_flash_attention.py. Queries, keys and values are copied into the order of batched products, and so is the output's
 * gradient; scaling the products' gradients is a kernel for queries and one for keys; three gradients are stacked into one. A causal
 * mask is added to the scores, one for all heads. Dropout of 0 returns its input.
 */
import type { Seconds } from "@trireme/core";
import { rooflinePricer } from "@trireme/cost-model";
import type { Accelerator } from "@trireme/topology";
import type { Operator } from "@trireme/workload";

/** Sizes of a measured attention. */
export interface AttentionSize {
  readonly batch: number;
  readonly heads: number;
  readonly sequence: number;
  readonly headDim: number;
  readonly causal: boolean;
}

/** Tensors of queries' size that change order: three in, the output's gradient, three gradients stacked. */
const permuted = 7;
/** And those that are scaled as they lie: the gradients of queries and keys. */
const scaled = 2;

/**
 * Integer instructions of an element where a kernel's operands lie in different orders, or one is broadcast: two divisions by
 * multiplication, three offsets and 64-bit addresses, and the access itself, as ATen's OffsetCalculator and its unvectorised
 * elementwise kernel (native/cuda/CUDALoops.cuh) write them; counted, about fifty, with the rows in sight.
 */
const instructions = 50;

/** Integer instructions over fp32 operations a second: 64 a clock and multiprocessor, beside 64 or 128 multiply-adds (CUDA C++ programming guide, arithmetic throughput of 8.0 and 9.0). */
const integerShare: Readonly<Record<string, number>> = { ampere: 1 / 2, hopper: 1 / 4 };

/** Seconds of these kernels, forward or backward or both. */
export function eagerKernels(
  a: Accelerator,
  { batch, heads, sequence, headDim, causal }: AttentionSize,
  passes: readonly ("forward" | "input-gradient")[],
): Seconds {
  const pricer = rooflinePricer(a, "bf16");
  const rate = (integerShare[a.architecture] ?? 1 / 4) * (a.peak.fp32 ?? Infinity);
  const stream = (elements: number): Seconds => pricer.operator(elementwise(elements));
  const indexed = (elements: number): Seconds =>
    Math.max(stream(elements), (instructions * elements) / rate);
  const operand = batch * sequence * heads * headDim;
  const forward = 3 * indexed(operand) + (causal ? indexed(batch * heads * sequence ** 2) : 0);
  const backward = (permuted - 3) * indexed(operand) + scaled * stream(operand);
  return passes.reduce((sum, pass) => sum + (pass === "forward" ? forward : backward), 0);
}

/** Reads and writes each of so many numbers of 16 bits. */
function elementwise(elements: number): Operator {
  return {
    key: `activation/copy/forward/${elements}`,
    kind: "activation",
    form: "copy",
    pass: "forward",
    shape: [elements],
    flops: 0,
    bytes: 4 * elements,
    count: 1,
  };
}
