/**
 * Matrix products in fewer bits, emulated: operands are rounded to the format, sums are in float32.
 * In BF16 results are rounded too. In FP8 activations and weights are E4M3 and gradients E5M2
 * (Micikevicius et al., 2022), scaled as a tensor by its present or its recent maximum, or in blocks of
 * 128 numbers of a row (DeepSeek-V3, 2024, section 3.3.2).
 */
import type { Fp8Scaling } from "@trireme/run";
import type { Plan } from "@trireme/workload";
import type { DelayedScaling } from "../weights/delayed-scaling.ts";
import type { Kernels } from "../kernels/kernels.ts";
import { type Tensor, matrixDims } from "../memory/tensor.ts";

/** What products compute in. */
type ProductPrecision =
  | { readonly kind: "bf16" }
  | { readonly kind: "fp8"; readonly scaling: Exclude<Fp8Scaling, "delayed"> }
  | { readonly kind: "fp8"; readonly scaling: "delayed"; readonly history: DelayedScaling };

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

/** Neither a scale nor its reciprocal may pass float32: numbers below 1e-36 are not scaled up further. */
const greatestScale = 2 ** 126;

/** Numbers of a row with one scale, in blocks. */
const block = 128;

export class ProductFormat {
  readonly #precision: ProductPrecision;

  constructor(precision: ProductPrecision) {
    this.#precision = precision;
  }

  /** Whether activations and their gradients are of this format all over, so that they are rounded where they lie. */
  get roundsInPlace(): boolean {
    return this.#precision.kind === "bf16";
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
    const greatest = this.#greatest(kernels, x, weight, role);
    const isScaled = greatest > 0 && Number.isFinite(greatest);
    const scale = isScaled ? Math.min(largest / greatest, greatestScale) : 1;
    roundTo(kernels, x, out, scale, numbers);
  }

  /** Rounds a product's result in place, where its format asks for that. */
  roundResult(kernels: Kernels, y: Tensor): void {
    if (this.#precision.kind === "bf16") roundTo(kernels, y, y.pointer, 1, bf16);
  }

  #greatest(kernels: Kernels, x: Tensor, weight: string, role: OperandRole): number {
    const now = kernels.absMax(x.pointer, x.size);
    const precision = this.#precision;
    if (precision.kind !== "fp8" || precision.scaling !== "delayed") return now;
    const { history } = precision;
    history.see(weight, role, now);
    const recent = history.greatest(weight, role);
    return recent > 0 ? recent : now;
  }
}

/** What a plan's products compute in, `history` given for delayed scaling; undefined for float32. */
export function planFormat(
  { precision, matrixPrecision }: Plan,
  scaling: Fp8Scaling,
  history: DelayedScaling | undefined,
): ProductFormat | undefined {
  if (matrixPrecision !== "fp8")
    return precision === "bf16" ? new ProductFormat({ kind: "bf16" }) : undefined;
  if (history !== undefined) return new ProductFormat({ kind: "fp8", scaling: "delayed", history });
  return new ProductFormat({ kind: "fp8", scaling: scaling === "block" ? "block" : "current" });
}

function roundTo(kernels: Kernels, x: Tensor, out: number, scale: number, n: Numbers): void {
  kernels.roundTo(x.pointer, out, x.size, scale, n.step, n.least, n.largest);
}
