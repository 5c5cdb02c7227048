/**
 * Silent data corruption on a rank: done where an injector says, and looked for where a product or a
 * gradient shows it. When and what are decisions of `@trireme/fault-tolerance`.
 */
import { fromBf16 } from "@trireme/collectives";
import { type Seconds, TriremeError } from "@trireme/core";
import {
  CorruptionInjector,
  type CorruptionTarget,
  type InjectorOptions,
  applyCorruption,
  checkMatmul,
  firstNonFinite,
} from "@trireme/fault-tolerance";
import type { Bucket } from "../weights/bucket.ts";
import { gradientElements } from "../memory/gradient-block.ts";
import { type Tensor, view } from "../memory/tensor.ts";

/** What is done to tensors, and what is looked for. */
export interface CorruptionOptions {
  /** Strikes at the results of products, gradients, weights and the optimizer's moments. */
  readonly inject?: InjectorOptions;
  /**
   * `checksum`: row and column sums of the layers' float32 products (ABFT; Huang, Abraham, 1984).
   * `finite`: gradients without NaN and infinity, before they are shared. What is found ends the step
   * with an error `CORRUPTION` that names the rank. Default none.
   */
  readonly detect?: readonly ("checksum" | "finite")[];
}

/** A product y[m, n] = x[m, k]·w[k, n], row by row. */
export interface WatchedProduct {
  readonly weight: string;
  readonly x: Tensor;
  /** Where it lies as it is read: its checksum needs that. */
  readonly w: Tensor | undefined;
  readonly y: Tensor;
  readonly shape: { readonly m: number; readonly k: number; readonly n: number };
}

export class CorruptionWatch {
  readonly #memory: WebAssembly.Memory;
  readonly #rank: number;
  readonly #injector: CorruptionInjector | undefined;
  readonly #perFlop: boolean;
  readonly #checks: boolean;
  readonly #guards: boolean;
  readonly #now: () => Seconds;
  #strikes = 0;
  #last: Seconds;

  constructor(
    memory: WebAssembly.Memory,
    rank: number,
    { inject, detect = [] }: CorruptionOptions,
    now: () => Seconds,
  ) {
    this.#memory = memory;
    this.#rank = rank;
    this.#injector = inject && new CorruptionInjector(inject);
    this.#perFlop = inject?.rate.per === "flop";
    this.#checks = detect.includes("checksum");
    this.#guards = detect.includes("finite");
    this.#now = now;
    this.#last = now();
  }

  /** Strikes so far. */
  get strikes(): number {
    return this.#strikes;
  }

  /** A product has been made. */
  product({ weight, x, w, y, shape }: WatchedProduct): void {
    const { m, k, n } = shape;
    this.#visit("gemm-output", view(this.#memory, y), 2 * m * k * n);
    if (!this.#checks || w === undefined) return;
    const values = (tensor: Tensor): Float32Array => view(this.#memory, tensor);
    const { ok, rows, columns } = checkMatmul(values(x), values(w), values(y), shape);
    if (ok) return;
    throw new TriremeError(
      "CORRUPTION",
      `the product with ${weight} is wrong by its checksums, in rows ${rows.slice(0, 4).join(", ")} and columns ${columns.slice(0, 4).join(", ")} of [${m}, ${n}]`,
    );
  }

  /** Gradients are about to be summed over the replicas. */
  gradients({ gradients, size, parameters }: Bucket): void {
    const values = gradientElements(this.#memory, gradients.whole);
    this.#visit("gradient", values, size);
    if (!this.#guards) return;
    const at = firstNonFinite(values, formatOf(values));
    if (at < 0) return;
    const name = parameters.findLast(({ offset }) => offset <= at)?.name;
    const value =
      values instanceof Uint16Array ? fromBf16(values.subarray(at, at + 1))[0] : values[at];
    throw new TriremeError("CORRUPTION", `the gradient of ${name} holds ${value}`);
  }

  /** The optimizer has updated the rank's segment. */
  updated({ segment, place }: Bucket): void {
    const { value, firstMoment, secondMoment } = place.segment;
    // Where the rank has values of its own, they are what is struck, whatever was updated elsewhere.
    const { memory } = place.pool;
    const held = segment.value.size > 0 ? view(this.#memory, segment.value) : view(memory, value);
    this.#visit("weight", held, segment.count);
    for (const moment of [firstMoment, secondMoment]) {
      this.#visit("optimizer-state", view(memory, moment), moment.size);
    }
  }

  #visit(target: CorruptionTarget, values: Float32Array | Uint16Array, flops: number): void {
    if (this.#injector === undefined) return;
    const now = this.#now();
    const work = this.#perFlop ? flops : now - this.#last;
    this.#last = now;
    const [size, format] = [values.length, formatOf(values)];
    const visit = { device: this.#rank, target, size, format, work } as const;
    const corruption = this.#injector.visit(visit);
    if (corruption === undefined) return;
    applyCorruption(values, corruption);
    this.#strikes++;
  }
}

function formatOf(values: Float32Array | Uint16Array): "float32" | "bfloat16" {
  return values instanceof Uint16Array ? "bfloat16" : "float32";
}
