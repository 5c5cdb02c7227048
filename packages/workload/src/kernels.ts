/**
 * The kernels of a transformer layer: for each, its arithmetic and memory traffic forward and
 * backward. Arithmetic is what runs, so causal tiles that flash attention skips are not counted,
 * while plain attention computes the whole score matrix. Traffic is that of a fused kernel: each
 * operand once. `e` is the bytes of an activation.
 */
import type { Bytes, Flops } from "@trireme/core";
import type { Model } from "./model.ts";
import { type Operator, type Pass, operator } from "./operator.ts";
import { type Plan, bytesOf, microbatches } from "./plan.ts";

/** Work of one pass of a kernel. */
interface Work {
  readonly flops: Flops;
  readonly bytes: Bytes;
}

/** Collects the operators of a stage in order of execution. */
export class OperatorList {
  readonly operators: Operator[] = [];
  readonly #plan: Plan;
  readonly #element: Bytes;
  /** Embedding and head are never recomputed. */
  #recompute: "none" | "operators" | "full" = "none";
  #count = 1;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#element = bytesOf(plan.precision);
  }

  /** What follows runs `count` times, and is computed again before backward as `recompute` says. */
  repeat(count: number, recompute: "none" | "operators" | "full"): void {
    this.#count = count;
    this.#recompute = recompute;
  }

  #push(
    kind: Operator["kind"],
    form: string,
    pass: Pass,
    shape: readonly number[],
    work: Work,
  ): void {
    this.operators.push(operator({ kind, form, pass, shape, ...work, count: this.#count }));
  }

  /**
   * Y[rows, out] = X[rows, inner] W; backward dX = dY Wᵀ, dW += Xᵀ dY in gradient precision.
   * With quantised products X and dY are cast first, for both of the products they enter. `dropped`
   * output features are not kept under recomputation by operator.
   */
  gemm(
    rows: number,
    inner: number,
    out: number,
    bias: boolean,
    o: { readonly quantise?: boolean; readonly dropped?: number } = {},
  ): void {
    const e = this.#element;
    const quantised = (o.quantise ?? true) ? this.#plan.matrixPrecision : undefined;
    const form = quantised ?? this.#plan.precision;
    const operand = quantised === undefined ? e : quantised === "fp8" ? 1 : 0.5;
    const flops = 2 * rows * inner * out;
    const shape = [1, rows, out, inner];
    const forward = {
      flops,
      bytes: operand * inner * (rows + out) + e * (rows * out + (bias ? out : 0)),
    };
    if (quantised !== undefined) this.#cast(rows, inner, operand, "forward");
    this.#push("gemm", form, "forward", shape, forward);
    // Output features that are not kept: all of them, or those of the products that are dropped.
    const again =
      this.#recompute === "full" ? out : this.#recompute === "operators" ? (o.dropped ?? 0) : 0;
    if (again > 0) {
      if (quantised !== undefined) this.#cast(rows, inner, operand, "recompute");
      const share = again / out;
      const work = { flops: flops * share, bytes: forward.bytes * share };
      this.#push("gemm", form, "recompute", [1, rows, again, inner], work);
    }
    if (quantised !== undefined) this.#cast(rows, out, operand, "input-gradient");
    this.#push("gemm", form, "input-gradient", [1, rows, inner, out], {
      flops,
      bytes: operand * out * (rows + inner) + e * rows * inner,
    });
    // A library's product adds to the gradient that is there; without one, it writes its result,
    // and autograd adds that to what earlier microbatches left.
    const apart = !this.#plan.fusedElementwise;
    const accumulate = (apart ? e : 2 * bytesOf(this.#plan.gradientPrecision)) * inner * out;
    this.#push("gemm", form, "weight-gradient", [1, out, inner, rows], {
      flops,
      bytes: operand * rows * (inner + out) + accumulate,
    });
    if (apart && this.#plan.zero < 2 && microbatches(this.#plan) > 1) {
      const bytes = (e + 2 * bytesOf(this.#plan.gradientPrecision)) * inner * out;
      this.#push("add", "accumulate", "weight-gradient", [inner, out], {
        flops: inner * out,
        bytes,
      });
    }
  }

  /** Reads a tensor for its largest value and again to write it and its transpose quantised. */
  #cast(rows: number, width: number, operand: Bytes, pass: Pass): void {
    const n = rows * width;
    const bytes = (2 * this.#element + 2 * operand) * n;
    this.#push("activation", operand === 1 ? "cast-fp8" : "cast-fp4", pass, [rows, width], {
      flops: 3 * n,
      bytes,
    });
  }

  /** softmax(QKᵀ/√d)V with a causal mask, on one rank's heads. */
  attention(m: Model): void {
    const { tp, cp, microbatch: b, sequence: s, flashAttention, dropout, recompute } = this.#plan;
    const e = this.#element;
    const heads = m.heads / tp;
    const kvHeads = m.kvHeads / tp;
    const shape = [b, heads, kvHeads, s, m.headDim];
    // Context parallelism gives each rank its queries, which meet every key once.
    const scores = (b * heads * s * s) / cp;
    const rows = (b * s * m.headDim) / cp;
    // Rotary embedding reads and writes queries and keys, in both directions.
    // Elementary operations turn a copy, multiply twice and add.
    const eager = m.position === "rotary" && !this.#plan.fusedElementwise;
    const rotary = m.position === "rotary" ? (eager ? 9 : 2) * e * rows * (heads + kvHeads) : 0;
    const form = [
      flashAttention ? `flash${this.#plan.flashVersion ?? ""}` : "plain",
      ...(cp > 1 ? [`cp${cp}`] : []),
      ...(eager ? ["eager"] : []),
    ].join("-");
    let forward: Work;
    let backward: Work;
    if (flashAttention) {
      // Two products over the half of the score matrix below the diagonal; backward has five.
      const product = (b * heads * s * (s + 1) * m.headDim) / cp;
      const statistics = (4 * b * heads * s) / cp;
      forward = {
        flops: 2 * product,
        bytes: e * rows * (2 * heads + 2 * kvHeads) + statistics + rotary,
      };
      backward = {
        flops: 5 * product,
        bytes: e * rows * (4 * heads + 4 * kvHeads) + statistics + rotary,
      };
    } else {
      // Elementary operations scale, mask, cast, exponentiate, divide and cast back one by one.
      // Scores are written, softmax reads and writes them, the second product reads them; dropout
      // reads and writes them with a mask of a byte. Backward twice the products.
      const product = 2 * scores * m.headDim;
      const unfused = this.#plan.fusedSoftmax ? 0 : 4 * e + 16;
      const drop = dropout > 0 ? 2 * e + 1 : 0;
      forward = {
        flops: 2 * product,
        bytes: scores * (4 * e + drop + unfused) + e * rows * (2 * heads + 2 * kvHeads) + rotary,
      };
      backward = {
        flops: 4 * product,
        bytes: scores * (7 * e + drop + unfused) + e * rows * (4 * heads + 4 * kvHeads) + rotary,
      };
    }
    this.#push("attention", form, "forward", shape, forward);
    if (recompute === "selective" || recompute === "full")
      this.#push("attention", form, "recompute", shape, forward);
    this.#push("attention", form, "input-gradient", shape, backward);
  }

  /** Layers are recomputed whole or by operator: everything but the products that are kept. */
  get #again(): boolean {
    return this.#recompute !== "none";
  }

  #rowwise(
    kind: "norm" | "activation" | "add",
    form: string,
    rows: number,
    width: number,
    forward: Work,
    backward: Work,
  ): void {
    const shape = [rows, width];
    this.#push(kind, form, "forward", shape, forward);
    if (this.#again) this.#push(kind, form, "recompute", shape, forward);
    this.#push(kind, form, "input-gradient", shape, backward);
  }

  /** LayerNorm or RMSNorm over rows; backward reads input and gradient, and reduces dγ (and dβ). */
  norm(kind: Model["norm"], rows: number, width: number): void {
    const n = rows * width;
    const e = this.#element;
    // Frameworks bring LayerNorm as a kernel. RMSNorm from elementary operations casts to 32 bits,
    // squares, averages, scales, casts back and multiplies by its weight.
    const eager = kind === "rmsnorm" && !this.#plan.fusedNorm;
    const [forward, backward] = eager ? [4 * e + 28, 8 * e + 56] : [2 * e, 3 * e];
    const form = eager ? "rmsnorm-eager" : kind;
    this.#rowwise(
      "norm",
      form,
      rows,
      width,
      { flops: 7 * n, bytes: forward * n },
      { flops: 14 * n, bytes: backward * n },
    );
  }

  /** GeLU, squared ReLU, or SwiGLU's silu(gate) × up with gate and up side by side; `width` is that of the result. */
  activation(kind: Model["activation"], rows: number, width: number): void {
    const n = rows * width;
    const e = this.#element;
    const gated = kind === "swiglu";
    const eager = gated && !this.#plan.fusedElementwise;
    const [forward, backward] = eager ? [5 * e, 9 * e] : gated ? [3 * e, 5 * e] : [2 * e, 3 * e];
    const flops = gated ? 6 : kind === "gelu" ? 8 : 2;
    const form = eager ? "swiglu-eager" : kind;
    this.#rowwise(
      "activation",
      form,
      rows,
      width,
      { flops: flops * n, bytes: forward * n },
      { flops: 2 * flops * n, bytes: backward * n },
    );
  }

  /** The residual sum, with bias and dropout of the branch where the model has them. */
  add(rows: number, width: number): void {
    const n = rows * width;
    const e = this.#element;
    const dropped = this.#plan.dropout > 0;
    const mask = dropped ? n : 0;
    this.#rowwise(
      "add",
      dropped ? "dropout" : "plain",
      rows,
      width,
      { flops: (dropped ? 3 : 1) * n, bytes: 3 * e * n + mask },
      // The gradients of the two branches are summed; dropout masks one of them.
      { flops: (dropped ? 2 : 1) * n, bytes: (dropped ? 5 : 3) * e * n + mask },
    );
  }

  /** Rows of the table by token; backward adds each token's gradient to its row. */
  embedding(tokens: number, width: number, vocab: number): void {
    const n = tokens * width;
    const e = this.#element;
    const shape = [tokens, width, vocab];
    const gradient = bytesOf(this.#plan.gradientPrecision);
    this.#push("embedding", this.#plan.precision, "forward", shape, { flops: 0, bytes: 2 * e * n });
    this.#push("embedding", this.#plan.precision, "weight-gradient", shape, {
      flops: n,
      bytes: (e + 2 * gradient) * n,
    });
  }

  /** Cross entropy over one rank's vocabulary; probabilities are kept in 32 bits for backward. */
  loss(rows: number, vocab: number): void {
    const n = rows * vocab;
    const e = this.#element;
    // From elementary operations: cast, subtract the maximum, exponentiate, sum, divide, each in 32 bits.
    const eager = !this.#plan.fusedElementwise;
    const [forward, backward] = eager ? [e + 28, e + 16] : [e + 4, e + 4];
    const form = `${this.#plan.precision}${eager ? "-eager" : ""}`;
    this.#push("loss", form, "forward", [rows, vocab], { flops: 5 * n, bytes: forward * n });
    this.#push("loss", form, "input-gradient", [rows, vocab], {
      flops: 2 * n,
      bytes: backward * n,
    });
  }

  /**
   * AdamW over the rank's share of the parameters: gradient, master weight and two moments in 32
   * bits read, the last three written, and the weights in training precision where that is another.
   */
  optimizer(parameters: number): void {
    const e = this.#element;
    const bytes = bytesOf(this.#plan.gradientPrecision) + 12 + 12 + (e === 4 ? 0 : e);
    this.#push("optimizer", "adamw", "update", [parameters], {
      flops: 14 * parameters,
      bytes: bytes * parameters,
    });
  }
}
