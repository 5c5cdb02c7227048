/**
 * Silent data corruption on a rank: done where an injector says, and looked for where a product or a
 * gradient shows it. When and what are decisions of `@trireme/fault-tolerance`.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import {
  CorruptionInjector,
  type CorruptionTarget,
  type InjectorOptions,
  applyCorruption,
  checkMatmul,
  firstNonFinite,
} from "@trireme/fault-tolerance";
import type { Bucket } from "./bucket.ts";
import { type Tensor, view } from "./tensor.ts";

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
    this.#visit("gemm-output", y, 2 * m * k * n);
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
  gradients(bucket: Bucket): void {
    this.#visit("gradient", bucket.gradients, bucket.size);
    if (!this.#guards) return;
    const values = view(this.#memory, bucket.gradients);
    const at = firstNonFinite(values);
    if (at < 0) return;
    const name = bucket.parameters.findLast(({ offset }) => offset <= at)?.name;
    throw new TriremeError("CORRUPTION", `the gradient of ${name} holds ${values[at]}`);
  }

  /** The optimizer has updated the rank's segment. */
  updated({ segment, place }: Bucket): void {
    const { value, firstMoment, secondMoment } = place.segment;
    // Where the rank has values of its own, they are what is struck, whatever was updated elsewhere.
    if (segment.value.size > 0) this.#visit("weight", segment.value, segment.count);
    else this.#visit("weight", value, segment.count, place.pool.memory);
    for (const moment of [firstMoment, secondMoment]) {
      this.#visit("optimizer-state", moment, moment.size, place.pool.memory);
    }
  }

  #visit(
    target: CorruptionTarget,
    tensor: Tensor,
    flops: number,
    memory: WebAssembly.Memory = this.#memory,
  ): void {
    if (this.#injector === undefined) return;
    const now = this.#now();
    const work = this.#perFlop ? flops : now - this.#last;
    this.#last = now;
    const { size } = tensor;
    const visit = { device: this.#rank, target, size, format: "float32", work } as const;
    const corruption = this.#injector.visit(visit);
    if (corruption === undefined) return;
    applyCorruption(view(memory, tensor), corruption);
    this.#strikes++;
  }
}
