/**
 * The kernels of a transformer: for each, its arithmetic and memory traffic forward and backward.
 * Traffic is that of a fused kernel: each operand once. `e` is the bytes of an activation.
 */
import type { Bytes, Flops } from "@trireme/core";
import { type Adapter, type Model, isGated } from "./model.ts";
import { type Operator, type Pass, operator } from "./operator.ts";
import { type Plan, bytesOf, vocabularyBarriers } from "./plan.ts";

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
    const kept = this.#recompute === "rematerialise" && (kind === "add" || kind === "routing");
    if (this.#recompute === "full" || this.#recompute === "operators" || this.#again(kept)) {
      this.push(kind, form, "recompute", shape, forward);
    }
    this.push(kind, form, "input-gradient", shape, backward);
  }

  #again(kept: boolean): boolean {
    return this.#recompute === "rematerialise" && !kept;
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

  /**
   * Keys from what each head has of its own and the rotated part that all share, beside values, which lie between
   * them in the product's result (Megatron-LM, fused_mla_yarn_rope_apply.py); backward takes them apart again. From
   * elementary operations queries are put together likewise, and values laid apart (multi_latent_attention.py).
   */
  headsOfLatents(
    rows: number,
    heads: number,
    headDim: number,
    nopeDim: number,
    valueDim: number,
  ): void {
    const width = heads * (headDim + valueDim);
    const bytes = this.element * rows * (heads * (nopeDim + valueDim) + width);
    if (this.plan.fusedRotary === false) {
      const work = { flops: 0, bytes: bytes + 2 * this.element * rows * width };
      this.rowwise("add", "latent-eager", [rows, width], work, work);
      return;
    }
    const work = { flops: 0, bytes };
    this.rowwise("add", "latent", [rows, width], work, work);
  }

  /** Rows of the table by token; backward adds each token's gradient to its row, unless the table is frozen. */
  embedding(tokens: number, width: number, vocab: number, frozen: boolean): void {
    const n = tokens * width;
    const e = this.element;
    const shape = [tokens, width, vocab];
    const gradient = bytesOf(this.plan.gradientPrecision);
    this.push("embedding", this.plan.precision, "forward", shape, { flops: 0, bytes: 2 * e * n });
    if (frozen) return;
    this.push("embedding", this.plan.precision, "weight-gradient", shape, {
      flops: n,
      bytes: (e + 2 * gradient) * n,
    });
  }

  /**
   * The gradient of a table's lookup as autograd writes it, all rows with zeros in most, and its sum with the step's.
   */
  denseGradient(rows: number, width: number): void {
    const n = rows * width;
    const bytes = (2 * this.element + 2 * bytesOf(this.plan.gradientPrecision)) * n;
    this.push("add", "accumulate", "weight-gradient", [rows, width], { flops: n, bytes });
  }

  /** Cross entropy over one rank's vocabulary; probabilities are kept in 32 bits for backward. */
  loss(rows: number, vocab: number): void {
    const n = rows * vocab;
    const e = this.element;
    const { fusedElementwise, fusedLoss = fusedElementwise } = this.plan;
    // From elementary operations: cast, subtract the maximum, exponentiate, sum, divide, each in 32 bits.
    // In place each is read and written again: cast (e + 4), maximum 4, difference 8, exponential 8, sum 4,
    // quotient 8; backward the product with the loss's gradient 8 and a cast 4 + e.
    const way = fusedLoss ? "" : fusedElementwise ? "-in-place" : "-eager";
    const [forward, backward] = fusedLoss
      ? [e + 4, e + 4]
      : fusedElementwise
        ? [e + 36, e + 12]
        : [e + 28, e + 16];
    // Barriers: probabilities by the rank's own sums are scaled to those of all, in the kernel of the gradient if fused
    // (8). With one, they are cast for the product with the table beforehand (4 + e; e of it if fused).
    const barriers = vocabularyBarriers(this.plan);
    const cast = barriers === 1 ? e + (fusedLoss ? 0 : 4) : 0;
    const scaled = barriers > 0 && !fusedLoss ? 8 : 0;
    const split = barriers === 0 ? "" : `-${barriers}`;
    const form = `${this.plan.precision}${way}${split}`;
    const shape = [rows, vocab];
    const pass = barriers === 1 ? "weight-gradient" : "input-gradient";
    this.push("loss", form, "forward", shape, { flops: 5 * n, bytes: (forward + cast) * n });
    this.push("loss", form, pass, shape, { flops: 2 * n, bytes: (backward + scaled) * n });
  }

  /**
   * AdamW over the rank's share of the parameters: gradient, master weight in 32 bits and two moments
   * read, the last three written, and the weights in training precision where that is another.
   * Offloaded, the host updates and the device has none.
   */
  optimizer(parameters: number): void {
    const e = this.element;
    const { gradientPrecision, momentPrecision = "fp32" } = this.plan;
    const state = 4 + 2 * bytesOf(momentPrecision);
    const bytes = bytesOf(gradientPrecision) + 2 * state + (e === 4 ? 0 : e);
    const form = this.plan.offload === "optimizer" ? "adamw-host" : "adamw";
    this.push("optimizer", form, "update", [parameters], {
      flops: 14 * parameters,
      bytes: bytes * parameters,
    });
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
