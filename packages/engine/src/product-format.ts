/**
 * Matrix products in fewer bits, emulated: operands are rounded to the format, sums are in float32.
 * In BF16 results are rounded too. In FP8 activations and weights are E4M3 and gradients E5M2
 * (Micikevicius et al., 2022), scaled as a tensor by its present or its recent maximum, or in blocks of
 * 128 numbers of a row (DeepSeek-V3, 2024, section 3.3.2).
 */
import type { Kernels } from "./kernels/kernels.ts";
import { type Tensor, matrixDims } from "./tensor.ts";

/** Where the scale of an FP8 operand comes from. */
export type Fp8Scaling = "current" | "delayed" | "block";

/** What products compute in. */
export type ProductPrecision =
  | { readonly kind: "bf16" }
  | { readonly kind: "fp8"; readonly scaling: Fp8Scaling };

/** An operand of a product: its input, its weight, or the gradient of its result. */
export type OperandRole = "input" | "weight" | "gradient";

/** Last digit relative to the power of two, least power, largest number. */
interface Numbers {
  readonly step: number;
  readonly least: number;
  readonly largest: number;
}

const bf16: Numbers = { step: 2 ** -7, least: 2 ** -126, largest: 2 ** 128 - 2 ** 120 };
const e4m3: Numbers = { step: 2 ** -3, least: 2 ** -6, largest: 448 };
const e5m2: Numbers = { step: 2 ** -2, least: 2 ** -14, largest: 57_344 };

/** Numbers of a row with one scale, in blocks. */
const block = 128;
/** Maxima that a delayed scale looks back on (Transformer Engine's default is 1,024 of them). */
const history = 16;

export class ProductFormat {
  readonly #precision: ProductPrecision;
  /** Latest maxima of operands, by weight and role. */
  readonly #maxima = new Map<string, number[]>();

  constructor(precision: ProductPrecision) {
    this.#precision = precision;
  }

  /** Rounds an operand of the product with this weight into `out`, of the same size. */
  round(kernels: Kernels, x: Tensor, out: number, weight: string, role: OperandRole): void {
    if (this.#precision.kind === "bf16") {
      roundTo(kernels, x, out, 1, bf16);
      return;
    }
    const numbers = role === "gradient" ? e5m2 : e4m3;
    const { step, least, largest } = numbers;
    if (this.#precision.scaling === "block") {
      const [rows, cols] = matrixDims(x);
      kernels.roundBlocksTo(x.pointer, out, rows, cols, block, step, least, largest);
      return;
    }
    const greatest = this.#greatest(kernels, x, `${weight} ${role}`);
    const scale = greatest > 0 && Number.isFinite(greatest) ? largest / greatest : 1;
    roundTo(kernels, x, out, scale, numbers);
  }

  /** Rounds a product's result in place, where its format asks for that. */
  roundResult(kernels: Kernels, y: Tensor): void {
    if (this.#precision.kind === "bf16") roundTo(kernels, y, y.pointer, 1, bf16);
  }

  #greatest(kernels: Kernels, x: Tensor, key: string): number {
    const now = kernels.absMax(x.pointer, x.size);
    if (this.#precision.kind === "fp8" && this.#precision.scaling === "current") return now;
    const maxima = this.#maxima.get(key);
    if (maxima === undefined) {
      this.#maxima.set(key, [now]);
      return now;
    }
    const greatest = Math.max(...maxima);
    maxima.push(now);
    if (maxima.length > history) maxima.shift();
    return greatest;
  }
}

function roundTo(kernels: Kernels, x: Tensor, out: number, scale: number, n: Numbers): void {
  kernels.roundTo(x.pointer, out, x.size, scale, n.step, n.least, n.largest);
}
