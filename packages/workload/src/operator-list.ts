/**
 * The kernels of a transformer: for each, its arithmetic and memory traffic forward and backward.
 * Traffic is that of a fused kernel: each operand once. `e` is the bytes of an activation.
 */
import type { Bytes, Flops } from "@trireme/core";
import { type Adapter, type Model, isGated } from "./model.ts";
import { type Operator, type Pass, operator } from "./operator.ts";
import type { Plan } from "./plan.ts";
import { bytesOf } from "./precision.ts";

/** Work of one pass of a kernel. */
export interface Work {
  readonly flops: Flops;
  readonly bytes: Bytes;
}

/** What a product is told beside its size. */
export interface ProductOptions {
  /** Operands may be quantised; the head's are not. */
  readonly quantise?: boolean;
  /** Output features that recomputation by operator does not keep. */
  readonly dropped?: number;
  /** Its weights are not trained. */
  readonly frozen?: boolean;
  /** How frozen weights are kept: expanded before each use, unless in full or as operands are. */
  readonly base?: Adapter["base"];
}

/** Collects the operators of a stage in order of execution. */
export class OperatorList {
  readonly operators: Operator[] = [];
  readonly plan: Plan;
  /** Bytes of an activation. */
  readonly element: Bytes;
  /** Embedding and head are never recomputed. */
  #recompute: Plan["recompute"] = "none";
  #count = 1;

  constructor(plan: Plan) {
    this.plan = plan;
    this.element = bytesOf(plan.precision);
  }

  /** What follows runs `count` times, and is computed again before backward as `recompute` says. */
  repeat(count: number, recompute: Plan["recompute"]): void {
    this.#count = count;
    this.#recompute = recompute;
  }

  /** What `body` appends belongs to a block of experts, which may be all that is computed again. */
  expertBlock(body: () => void): void {
    const outside = this.#recompute;
    if (outside === "experts") this.#recompute = "full";
    body();
    this.#recompute = outside;
  }

  push(
    kind: Operator["kind"],
    form: string,
    pass: Pass,
    shape: readonly number[],
    work: Work,
  ): void {
    const { flops, bytes } = work;
    this.operators.push(operator(kind, form, pass, shape, flops, bytes, this.#count));
  }

  /**
   * Y[rows, out] = X[rows, inner] W; backward dX = dY Wᵀ, dW += Xᵀ dY in gradient precision.
   * With quantised products X and dY are cast first, for both of the products they enter; weights once a step, whose
   * time does not count, but for int8: AQT scales both operands of each product anew (aqt_dot_general).
   */
  gemm(rows: number, inner: number, out: number, bias: boolean, o: ProductOptions = {}): void {
    this.#product("gemm", 1, rows, inner, out, bias, o);
  }

  /** The same for `groups` matrices, each on its rows of `rows` together. */
  groupedGemm(
    groups: number,
    rows: number,
    inner: number,
    out: number,
    bias: boolean,
    o: ProductOptions = {},
  ): void {
    this.#product("grouped-gemm", groups, rows, inner, out, bias, o);
  }

  #product(
    kind: "gemm" | "grouped-gemm",
    groups: number,
    rows: number,
    inner: number,
    out: number,
    bias: boolean,
    o: ProductOptions,
  ): void {
    const e = this.element;
    const quantised = (o.quantise ?? true) ? this.plan.matrixPrecision : undefined;
    const fused = kind === "grouped-gemm" && this.plan.groupedKernel ? "-fused" : "";
    const form = `${quantised ?? this.plan.precision}${fused}`;
    const operand = quantised === undefined ? e : quantised === "fp4" ? 0.5 : 1;
    const flops = 2 * rows * inner * out;
    const weights = groups * inner * out;
    const written = e * (rows * out + (bias ? groups * out : 0));
    const forward = { flops, bytes: operand * (inner * rows + weights) + written };
    const expand = expanded(o.base, quantised);
    // What no weight gradient is made from is not written transposed.
    const copies = o.frozen === true ? 1 : 2;
    if (expand !== undefined) this.#expand(groups * inner, out, expand, "forward");
    if (quantised !== undefined) this.cast(quantised, rows, inner, copies, "forward");
    if (quantised === "int8") this.cast(quantised, groups * inner, out, copies, "forward");
    this.push(kind, form, "forward", [groups, rows, out, inner], forward);
    // Output features that are not kept: all of them, or those of the products that are dropped.
    const again =
      this.#recompute === "full" ? out : this.#recompute === "operators" ? (o.dropped ?? 0) : 0;
    if (again > 0) {
      if (quantised !== undefined) this.cast(quantised, rows, inner, copies, "recompute");
      if (quantised === "int8") this.cast(quantised, groups * inner, again, copies, "recompute");
      const share = again / out;
      const work = { flops: flops * share, bytes: forward.bytes * share };
      this.push(kind, form, "recompute", [groups, rows, again, inner], work);
    }
    if (expand !== undefined) this.#expand(groups * inner, out, expand, "input-gradient");
    if (quantised !== undefined) this.cast(quantised, rows, out, copies, "input-gradient");
    if (quantised === "int8") {
      this.cast(quantised, groups * inner, out, copies, "input-gradient");
    }
    this.push(kind, form, "input-gradient", [groups, rows, inner, out], {
      flops,
      bytes: operand * (out * rows + weights) + e * rows * inner,
    });
    if (o.frozen !== true) this.#weightGradient(kind, form, groups, rows, inner, out, operand);
  }

  /**
   * A library's product adds to the gradient that is there; without one, it writes its result,
   * and autograd adds that to what earlier microbatches left.
   */
  #weightGradient(
    kind: "gemm" | "grouped-gemm",
    form: string,
    groups: number,
    rows: number,
    inner: number,
    out: number,
    operand: Bytes,
  ): void {
    const { plan, element: e } = this;
    const weights = groups * inner * out;
    const apart = !plan.fusedElementwise;
    const accumulate = (apart ? e : 2 * bytesOf(plan.gradientPrecision)) * weights;
    // A grouped product's rows are its inner dimension here, all groups together.
    const shape =
      kind === "gemm" ? [1, out, inner, rows] : [groups, groups * out, inner, rows / groups];
    this.push(kind, form, "weight-gradient", shape, {
      flops: 2 * rows * inner * out,
      bytes: operand * rows * (inner + out) + accumulate,
    });
    if (apart && plan.zero < 2 && plan.globalBatch > plan.dp * plan.microbatch) {
      const bytes = (e + 2 * bytesOf(plan.gradientPrecision)) * weights;
      this.push("add", "accumulate", "weight-gradient", [groups * inner, out], {
        flops: weights,
        bytes,
      });
    }
  }

  /**
   * Reads a tensor for its largest value and again to write it quantised, and its transpose where weights are trained;
   * in 4 bits once more, since the transpose alone is rotated (random Hadamard transform of NVFP4, arXiv 2509.25149
   * §4), and with a scale to 16 numbers.
   */
  cast(
    format: NonNullable<Plan["matrixPrecision"]>,
    rows: number,
    width: number,
    copies: 1 | 2,
    pass: Pass,
  ): void {
    const n = rows * width;
    const four = format === "fp4";
    const operand = four ? 0.5 + 1 / 16 : 1;
    const reads = four ? 1 + copies : 2;
    const bytes = (reads * this.element + copies * operand) * n;
    const form = `cast-${format}${copies === 1 ? "-once" : ""}`;
    this.push("activation", form, pass, [rows, width], { flops: 3 * n, bytes });
  }

  /** Writes frozen weights out in training precision before a product. */
  #expand(inner: number, out: number, base: Exclude<Adapter["base"], "full">, pass: Pass): void {
    const n = inner * out;
    const stored = base === "nf4" ? 0.5 : 1;
    const work = { flops: n, bytes: (stored + this.element) * n };
    this.push("activation", `expand-${base}`, pass, [inner, out], work);
  }

  /** A kernel that works row by row, and again where layers are recomputed. */
  rowwise(
    kind: "norm" | "activation" | "add" | "convolution" | "routing" | "permutation",
    form: string,
    shape: readonly number[],
    forward: Work,
    backward: Work,
  ): void {
    this.push(kind, form, "forward", shape, forward);
    // Rematerialisation keeps the residual stream and the routing.
    const kept = kind === "add" || kind === "routing";
    const again = this.#recompute === "rematerialise" && !kept;
    if (this.#recompute === "full" || this.#recompute === "operators" || again) {
      this.push(kind, form, "recompute", shape, forward);
    }
    this.push(kind, form, "input-gradient", shape, backward);
  }

  /** Whether attention is computed again. */
  get recomputesAttention(): boolean {
    return this.#recompute === "selective" || this.#recompute === "full";
  }

  /** Whether scans are: what selects by the attention core, or keeps products, keeps them. */
  get recomputesScan(): boolean {
    return this.#recompute === "full" || this.#recompute === "operators";
  }

  /** A kernel of a scan: `batch` products C[m, n] = A[m, k] B[k, n], or the sum over a state where k is 0. */
  scan(form: string, pass: Pass, shape: readonly number[], bytes: Bytes): void {
    const [batch, m, n, k] = shape;
    const flops = 2 * batch! * m! * n! * (k === 0 ? 1 : k!);
    this.push("scan", form, pass, shape, { flops, bytes });
  }

  /** LayerNorm or RMSNorm over rows; backward reads input and gradient, and reduces dγ (and dβ). */
  norm(kind: Model["norm"], rows: number, width: number): void {
    const n = rows * width;
    const e = this.element;
    // Frameworks bring LayerNorm as a kernel. RMSNorm from elementary operations casts to 32 bits,
    // squares, averages, scales, casts back and multiplies by its weight.
    const eager = kind === "rmsnorm" && !this.plan.fusedNorm;
    const [forward, backward] = eager ? [4 * e + 28, 8 * e + 56] : [2 * e, 3 * e];
    this.rowwise(
      "norm",
      eager ? "rmsnorm-eager" : kind,
      [rows, width],
      { flops: 7 * n, bytes: forward * n },
      { flops: 14 * n, bytes: backward * n },
    );
  }

  /**
   * GeLU, ReLU or its square, or silu(gate) × up (gelu for GeGLU) with gate and up side by side; `width` is that of the
   * result. Where gate and up are cut to a bound first, frameworks do so by elementary operations: they read and write
   * both, and in front of a fused kernel put them side by side again (Megatron-LM, fused_bias_geglu.py).
   */
  activation(kind: Model["activation"], rows: number, width: number, clamped = false): void {
    const n = rows * width;
    const e = this.element;
    const gated = isGated(kind);
    const eager = gated && !this.plan.fusedElementwise;
    const [once, back] = eager ? [5 * e, 9 * e] : gated ? [3 * e, 5 * e] : [2 * e, 3 * e];
    const [cut, cutBack] = clamped ? (eager ? [4 * e, 6 * e] : [8 * e, 10 * e]) : [0, 0];
    const [forward, backward] = [once + cut, back + cutBack];
    const flops = kind === "geglu" ? 9 : gated ? 6 : kind === "gelu" ? 8 : kind === "relu" ? 1 : 2;
    this.rowwise(
      "activation",
      `${kind}${clamped ? "-clamped" : ""}${eager ? "-eager" : ""}`,
      [rows, width],
      { flops: flops * n, bytes: forward * n },
      { flops: 2 * flops * n, bytes: backward * n },
    );
  }

  /** The residual sum, with bias and dropout of the branch where the model has them. */
  add(rows: number, width: number): void {
    const n = rows * width;
    const e = this.element;
    const dropped = this.plan.dropout > 0;
    const mask = dropped ? n : 0;
    this.rowwise(
      "add",
      dropped ? "dropout" : "plain",
      [rows, width],
      { flops: (dropped ? 3 : 1) * n, bytes: 3 * e * n + mask },
      // The gradients of the two branches are summed; dropout masks one of them.
      { flops: (dropped ? 2 : 1) * n, bytes: (dropped ? 5 : 3) * e * n + mask },
    );
  }
}

/** How frozen weights are kept where a product cannot take them so: those in fp8 by products in fp8 alone. */
function expanded(
  base: Adapter["base"] | undefined,
  quantised: Plan["matrixPrecision"],
): Exclude<Adapter["base"], "full"> | undefined {
  if (base === undefined || base === "full") return undefined;
  return base === "fp8" && quantised === "fp8" ? undefined : base;
}
