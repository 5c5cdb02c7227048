/** Matrix products, attention and casts measured alone. */
import { type Seconds, TriremeError } from "@trireme/core";
import { rooflinePricer } from "@trireme/cost-model";
import type { Accelerator } from "@trireme/topology";
import { type Operator, defineModel, definePlan, stageOperators, stages } from "@trireme/workload";
import { acceleratorOf, unknownAccelerator } from "./corpus-hardware.ts";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import { eagerKernels } from "./eager-attention.ts";
import type { Group, Outcome } from "./outcome.ts";

/** The outcome of the row of a product, of attention or of a cast. */
export function kernelOutcome(row: CorpusRow): Outcome {
  const sure = row.confidence === "high";
  const casts = castOf(row);
  const kind = kindOf(row, casts !== undefined);
  const group: Group = {
    id: sure ? kind : `${kind}-unsure`,
    source: "corpus",
    kind: `${kind} time`,
    ...(sure && kind !== "cast" ? { target: { medianError: 0.08 } } : {}),
  };
  const skip = (reason: string): Outcome => ({ group, id: row.id, skipped: reason });
  const whole = acceleratorOf(text(row.hardware, "gpu"));
  if (whole === undefined) return skip(unknownAccelerator(text(row.hardware, "gpu")));
  const a = row.notes.includes("half a chip") ? halfOf(whole) : whole;
  const stated = text(row.parallel, "precision");
  const precision = /fp4/.test(stated) ? "fp4" : /fp8/.test(stated) ? "fp8" : "bf16";
  try {
    const pricer = rooflinePricer(a, "bf16");
    const other = row.kind === "gemm" ? productOf(row, precision) : attentionOf(row, a);
    const time = casts ?? other;
    if (typeof time === "string") return skip(time);
    const kernels = time.operators.reduce((sum, o) => sum + o.count * pricer.operator(o), 0);
    const predicted = kernels + (time.besides ?? 0);
    return {
      group,
      id: row.id,
      measured: time.measured,
      predicted,
      ...(kind === "cast" ? {} : { claim: { kind, accelerator: a } }),
    };
  } catch (error) {
    if (error instanceof TriremeError) return skip(`refused: ${error.message}`);
    throw error;
  }
}

/** One of the two devices that JAX makes of a chip. */
function halfOf(a: Accelerator): Accelerator {
  return {
    ...a,
    peak: Object.fromEntries(Object.entries(a.peak).map(([format, rate]) => [format, rate / 2])),
    memoryBandwidth: a.memoryBandwidth / 2,
    multiprocessors: a.multiprocessors / 2,
  };
}

function kindOf(row: CorpusRow, casts: boolean): "attention" | "cast" | "gemm" | "grouped-gemm" {
  if (casts) return "cast";
  if (row.kind !== "gemm") return "attention";
  return groupsOf(row) === undefined ? "gemm" : "grouped-gemm";
}

interface Kernel {
  readonly operators: readonly Operator[];
  readonly measured: number;
  /** What no operator describes. */
  readonly besides?: Seconds;
}

function productOf(row: CorpusRow, precision: ProductPrecision): Kernel | string {
  const p = row.parallel;
  const [m, n, k] = ["M", "N", "K"].map((key) => number(p, key));
  if (m === undefined || n === undefined || k === undefined) return "missing: M, N, K";
  const stated = groupsOf(row);
  const groups = stated ?? 1;
  const kind = stated === undefined ? "gemm" : "grouped-gemm";
  const whole = text(p, "pass_").startsWith("fwd+bwd");
  const each = splitOver(row, groups, m, k);
  const operators = whole
    ? forwardAndBackward(groups, each.m, n, k, precision)
    : [product(kind, precision, groups, each.m, n, each.k)];
  const flops = operators.reduce((sum, o) => sum + (o.kind === "activation" ? 0 : o.flops), 0);
  const micro = number(row.measured, "time_us");
  const rate = number(row.measured, "tflops");
  const measured =
    micro === undefined ? (rate === undefined ? undefined : flops / (rate * 1e12)) : micro * 1e-6;
  const besides = whole && precision !== "bf16" ? 2 * groups * each.m * scalesOrdered : 0;
  return measured === undefined ? "missing: time" : { operators, measured, besides };
}

/** Groups of a grouped product; undefined for a single one. */
function groupsOf(row: CorpusRow): number | undefined {
  const stated = number(row.parallel, "groups");
  if (stated !== undefined) return stated;
  const noted = /(\d+) groups/.exec(row.notes)?.[1];
  return noted === undefined ? undefined : Number(noted);
}

type ProductPrecision = "bf16" | "fp8" | "fp4";

/** Rows and inner dimension of one group: the tokens are shared out, in a weight gradient the inner dimension. */
function splitOver(row: CorpusRow, groups: number, m: number, k: number): { m: number; k: number } {
  if (groups === 1 || row.notes.includes("M is per group")) return { m, k };
  return row.notes.startsWith("wgrad") ? { m, k: k / groups } : { m: m / groups, k };
}

/** `batch` products of m rows each; grouped, in one kernel. */
function product(
  kind: "gemm" | "grouped-gemm",
  precision: ProductPrecision,
  batch: number,
  m: number,
  n: number,
  k: number,
): Operator {
  const operand = precision === "bf16" ? 2 : precision === "fp8" ? 1 : 0.5;
  const form = kind === "gemm" ? precision : `${precision}-fused`;
  const rows = kind === "gemm" ? m : batch * m;
  return {
    key: `${kind}/${form}/forward/${batch}x${rows}x${n}x${k}`,
    kind,
    form,
    pass: "forward",
    shape: [batch, rows, n, k],
    flops: 2 * batch * m * n * k,
    bytes: batch * (operand * k * (m + n) + 2 * m * n),
    count: 1,
  };
}

/**
 * The three products of a grouped layer, and for quantised ones the casts of input, weights and output gradient, and
 * the order of their scales: blocks of 1x32 have one each, which the product reads in another order than the cast writes.
 */
function forwardAndBackward(
  groups: number,
  m: number,
  n: number,
  k: number,
  precision: ProductPrecision,
): Operator[] {
  const products = [
    product("grouped-gemm", precision, groups, m, n, k),
    product("grouped-gemm", precision, groups, m, k, n),
    product("grouped-gemm", precision, groups, n, k, m),
  ];
  if (precision === "bf16") return products;
  return [...products, cast(groups * m, k), cast(groups * n, k), cast(groups * m, n)];
}

/**
 * Seconds a row of tokens that torchao's kernel takes to order the scales of the input, and of the output's gradient:
 * 199 µs for 131,072 rows of 224 scales, 193 µs for as many of 64 (the list of kernels in the README of its
 * moe_training at 0b1bb11; weights and transposed scales take a tenth of it).
 */
const scalesOrdered: Seconds = 1.5e-9;

/** Reads 16 bits and writes 8 along rows and, the second time, along columns, with a scale for each 32. */
function cast(rows: number, width: number, times = 2): Operator {
  return {
    key: `activation/cast-fp8/forward/${rows}x${width}`,
    kind: "activation",
    form: "cast-fp8",
    pass: "forward",
    shape: [rows, width],
    flops: 1.5 * times * rows * width,
    bytes: times * (3 + 1 / 32) * rows * width,
    count: 1,
  };
}

/** A kernel that quantises alone; undefined for other rows. */
function castOf(row: CorpusRow): Kernel | undefined {
  const shape = /^(?:(\d+)x)?(\d+)x(\d+)$/.exec(text(row.parallel, "shape"));
  const micro = number(row.measured, "time_us");
  if (!text(row.parallel, "op").startsWith("quant ") || shape === null || micro === undefined) {
    return undefined;
  }
  const [, groups = "1", rows, width] = shape;
  const operators = [cast(Number(groups) * Number(rows), Number(width), 1)];
  return { operators, measured: micro * 1e-6 };
}

function attentionOf(row: CorpusRow, a: Accelerator): Kernel | string {
  const p = row.parallel;
  const [sequence, headDim, heads, batch] = ["seq", "head_dim", "heads", "batch"].map((key) =>
    number(p, key),
  );
  const rate = number(row.measured, "tflops");
  if (rate === undefined) return "missing: tflops";
  for (const [key, value] of Object.entries({ seq: sequence, head_dim: headDim, heads, batch })) {
    if (value === undefined) return `missing: ${key}`;
  }
  const implementation = text(p, "impl");
  const version = /^flashattention-([123])$/.exec(implementation)?.[1];
  const eager = implementation === "pytorch-unfused";
  if (version === undefined && implementation !== "cudnn" && !eager)
    return `not covered: ${implementation} attention`;
  const causal = text(p, "causal") === "true";
  if (/fp8/.test(text(p, "precision"))) return "not covered: attention in fp8";
  const m = defineModel({
    layers: 1,
    hidden: heads! * headDim!,
    heads: heads!,
    headDim: headDim!,
    vocab: 1,
    context: sequence!,
  });
  const plan = definePlan(m, {
    globalBatch: batch!,
    microbatch: batch!,
    flashAttention: !eager,
  });
  const direction = text(p, "direction");
  const passes = (["forward", "input-gradient"] as const).filter(
    (pass) => direction !== (pass === "forward" ? "bwd" : "fwd"),
  );
  const operators = stageOperators(m, plan, stages(m, plan)[0]!)
    .operators.filter((o) => o.kind === "attention" && passes.some((pass) => pass === o.pass))
    .map((o) => (eager ? o : ofGeneration(o, version, causal)));
  const size = { batch: batch!, heads: heads!, sequence: sequence!, headDim: headDim!, causal };
  const besides = eager ? eagerKernels(a, size, passes) : 0;
  // FLOPs as the papers count: half the score matrix under a mask, backward 2.5 times forward.
  const factor = (direction !== "bwd" ? 1 : 0) + (direction !== "fwd" ? 2.5 : 0);
  const flops = factor * (causal ? 2 : 4) * batch! * heads! * sequence! ** 2 * headDim!;
  return { operators, measured: flops / (rate * 1e12), besides };
}

/** The operator as a generation's kernel, or cuDNN's; the mask is described by the form alone. */
function ofGeneration(o: Operator, version: string | undefined, causal: boolean): Operator {
  const form = `flash${version ?? ""}${causal ? "" : "-full"}`;
  return { ...o, form, key: `${o.key}/${form}`, flops: causal ? o.flops : 2 * o.flops };
}
