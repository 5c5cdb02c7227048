/**
 * Trained tensors that are shared, reduced and updated together: those of one stage that the same
 * ranks hold. Values, gradients and moments each lie in one flat block. With ZeRO (Rajbhandari et
 * al., 2020) the replicas share out the update by equal segments of the block: moments exist for the
 * own segment only (1), so do gradients once they are reduced (2) and values outside of use (3).
 */
import type { Communicator, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { BucketOptions } from "./bucket-options.ts";
import { BucketParameter } from "./bucket-parameter.ts";
import {
  afterwards,
  allReduceBf16,
  allReduceFloat32,
  reduceScatterBf16,
} from "./gradient-reduction.ts";
import { HalfValues } from "./half-values.ts";
import { HostPlace } from "./host-place.ts";
import type { Kernels } from "./kernels/kernels.ts";
import type { Pool } from "./pool.ts";
import { initialize } from "./initial-values.ts";
import type { Range } from "./slice.ts";
import { type Tensor, part, view } from "./tensor.ts";

/** The segment of a bucket that this rank updates. */
export interface Segment {
  /** Offset in the flat block. */
  readonly start: number;
  /** Elements. */
  readonly count: number;
  readonly value: Tensor;
  readonly gradient: Tensor;
  readonly firstMoment: Tensor;
  readonly secondMoment: Tensor;
}

/** Where a segment is updated: moments are there, and values and gradients when an update begins. */
export interface UpdatePlace {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly segment: Segment;
}

/** What a bucket has of what it needs not, or has elsewhere. */
const nothing: Tensor = { pointer: 0, dims: [0], size: 0 };

/** Elements between the beginnings of neighbours: whole cache lines. */
const lineElements = 16;

export class Bucket {
  readonly parameters: readonly BucketParameter[];
  /** In the rank's memory. */
  readonly segment: Segment;
  readonly place: UpdatePlace;
  /** The place, where it is not the rank's memory. */
  readonly host: HostPlace | undefined;
  /** Length of a flat block. */
  readonly size: number;
  /** Whether its norm is counted here, and its gradient told. */
  readonly speaks: boolean;
  /** Working values, where the segment's are their masters. */
  readonly halves: HalfValues | undefined;
  readonly #options: BucketOptions;
  #values: Tensor | undefined;
  #gradients: Tensor | undefined;

  constructor(options: BucketOptions) {
    const { pool, specs, replicas, zero, seed } = options;
    this.#options = options;
    let end = 0;
    this.parameters = specs.map((spec) => {
      const parameter = new BucketParameter(this, spec, end);
      end += roundUp(parameter.size, lineElements);
      return parameter;
    });
    this.size = zero === 0 ? end : roundUp(end, lineElements * replicas.ranks);
    const count = zero === 0 ? this.size : this.size / replicas.ranks;
    const start = zero === 0 ? 0 : count * replicas.rank;
    // Replicas that update everything speak by the first of them.
    this.speaks = options.speaks && (zero > 0 || replicas.rank === 0);

    const values = this.#block(this.size);
    for (const { spec, offset, size } of this.parameters) {
      initialize(view(pool.memory, part(values, offset, size)), spec, seed);
    }
    const frozen = options.frozen === true;
    let value = part(values, start, count);
    if (options.narrow === true) {
      this.halves = new HalfValues({ ...options, size: this.size });
      if (zero < 3) {
        this.halves.open();
        this.halves.write(values, 0);
      }
    }
    const { host } = options;
    this.host =
      host === undefined || frozen
        ? undefined
        : new HostPlace(host, pool.memory, { start, value }, this.halves);
    const isApart = zero === 3 || this.halves !== undefined;
    if (isApart) {
      const isElsewhere = this.host !== undefined && this.halves !== undefined;
      value = isElsewhere ? nothing : this.#block(count);
      pool.copy(values.pointer + start * 4, value.pointer, value.size);
      pool.free(values);
    }
    this.#values = isApart ? undefined : values;
    const gradients = zero < 2 && !frozen ? this.#block(this.size) : undefined;
    this.#gradients = gradients;
    const own = (): Tensor => (frozen ? nothing : this.#block(count));
    const gradient = gradients === undefined ? own() : part(gradients, start, count);
    const moment = (): Tensor => (this.host === undefined ? own() : nothing);
    const [firstMoment, secondMoment] = [moment(), moment()];
    this.segment = { start, count, value, gradient, firstMoment, secondMoment };
    this.place = this.host ?? { pool, kernels: options.kernels, segment: this.segment };
  }

  /** The whole values; there are none while they are sharded. */
  get values(): Tensor {
    if (this.#values === undefined) throw new Error(`${this.#name} is sharded`);
    return this.#values;
  }

  /** The gradients that backward adds to. */
  get gradients(): Tensor {
    if (this.#gradients === undefined) throw new Error(`${this.#name} takes no gradients now`);
    return this.#gradients;
  }

  /** Clears what the last step left. */
  beginStep(): void {
    const { pool } = this.#options;
    for (const block of new Set([this.#gradients ?? this.segment.gradient, this.segment.gradient]))
      view(pool.memory, block).fill(0);
  }

  /** Makes room for gradients where none is kept between steps. */
  openGradients(): void {
    this.#gradients ??= this.#block(this.size);
  }

  /** Whether there are only the own segment's values now. */
  get sharded(): boolean {
    return this.halves === undefined ? this.#values === undefined : !this.halves.isOpen;
  }

  /** Gathers the values of a bucket that is sharded (ZeRO 3); they may be read when the work is over. */
  unshard(): Work | undefined {
    const { pool, replicas } = this.#options;
    if (!this.sharded) return undefined;
    if (this.halves !== undefined) {
      this.halves.open();
      this.host?.giveValues(this.segment.value);
      return this.#exchangeHalves(this.halves);
    }
    this.#values = pool.allocate([this.size]);
    const { memory } = pool;
    return replicas.allGather(view(memory, this.segment.value), view(memory, this.#values));
  }

  /** Frees the whole values of a bucket that is sharded. */
  reshard(): void {
    if (this.#options.zero < 3) return;
    this.halves?.close();
    if (this.#values === undefined) return;
    this.#options.pool.free(this.#values);
    this.#values = undefined;
  }

  /** Starts to sum the gradients over the replicas, to the whole or to the own segment. */
  reduce(): Work {
    this.openGradients();
    return this.#sum(this.gradients, this.segment.gradient);
  }

  /**
   * Starts to sum the gradients of one backward, and adds the sum to the own segment's when the work is
   * waited for: the whole gradients are gone then (ZeRO 2 and 3).
   */
  addReduced(): Work {
    const { pool, kernels } = this.#options;
    const { gradient } = this.segment;
    const whole = this.gradients;
    const sum = pool.allocate(gradient.dims);
    this.#gradients = undefined;
    return afterwards(this.#sum(whole, sum), () => {
      kernels.accumulate(sum.pointer, gradient.pointer, gradient.size);
      pool.free(sum);
      pool.free(whole);
    });
  }

  #sum(whole: Tensor, segment: Tensor): Work {
    const { replicas, zero, pool, kernels, wholeSums } = this.#options;
    const { start } = this.segment;
    const all = zero === 0 || wholeSums === true;
    const reduction = { pool, kernels, replicas, whole, segment, start };
    if (this.#compresses) return all ? allReduceBf16(reduction) : reduceScatterBf16(reduction);
    if (all) return allReduceFloat32(reduction);
    return replicas.reduceScatter(view(pool.memory, whole), view(pool.memory, segment));
  }

  /** Bytes of the whole values. */
  get bytes(): Bytes {
    return this.size * (this.halves === undefined ? 4 : 2);
  }

  /** Bytes of the gradients that replicas exchange. */
  get reducedBytes(): Bytes {
    return this.size * (this.#compresses ? 2 : 4);
  }

  get #compresses(): boolean {
    return this.#options.compressed === true && this.#options.replicas.ranks > 1;
  }

  /** After the reduction: frees what is no longer needed, and completes gradients that are parts. */
  settle(): void {
    const { zero, pool, partial } = this.#options;
    if (zero >= 2 && this.#gradients !== undefined) {
      pool.free(this.#gradients);
      this.#gradients = undefined;
    }
    partial?.allReduce(view(pool.memory, this.segment.gradient)).wait();
  }

  /** Whether replicas update segments of values that all of them keep (ZeRO 1 and 2). */
  get sharesValues(): boolean {
    const { zero, replicas } = this.#options;
    return (zero === 1 || zero === 2) && replicas.ranks > 1;
  }

  /** After the update: starts to give the other replicas the new values, and renews working ones. */
  share(): Work | undefined {
    const { replicas, pool } = this.#options;
    if (this.halves !== undefined) {
      return this.halves.isOpen ? this.#exchangeHalves(this.halves) : undefined;
    }
    if (!this.sharesValues) return undefined;
    return replicas.allGather(
      view(pool.memory, this.segment.value),
      view(pool.memory, this.values),
    );
  }

  #exchangeHalves(halves: HalfValues): Work {
    const { start, count, value } = this.segment;
    // From the host they have come rounded.
    if (this.host === undefined) halves.write(value, start);
    return halves.exchange(start, count);
  }

  /** The part of the flat block that this rank stores: replicas that hold the same share it out. */
  get stored(): Range {
    const { zero, replicas, speaks } = this.#options;
    const { start, count } = this.segment;
    if (!speaks) return { start, count: 0 };
    if (zero > 0) return { start, count };
    const share = roundUp(Math.ceil(this.size / replicas.ranks), lineElements);
    const from = Math.min(this.size, share * replicas.rank);
    return { start: from, count: Math.min(share, this.size - from) };
  }

  /** The rank's memory. */
  get memory(): WebAssembly.Memory {
    return this.#options.pool.memory;
  }

  /** The ranks that hold the same. */
  get replicas(): Communicator {
    return this.#options.replicas;
  }

  /** The ranks that update other parts of the same tensors; undefined where each updates all. */
  get segmentGroup(): Communicator | undefined {
    return this.#options.zero > 0 ? this.#options.replicas : undefined;
  }

  /** The ranks that hold other slices of the tensors that are sliced. */
  get sliceGroup(): Communicator | undefined {
    return this.#options.slices;
  }

  /** Whether there are values alone. */
  get frozen(): boolean {
    return this.#options.frozen === true;
  }

  get #name(): string {
    return this.#options.specs[0]?.name ?? "an empty bucket";
  }

  #block(count: number): Tensor {
    const { pool } = this.#options;
    const tensor = pool.allocate([count]);
    view(pool.memory, tensor).fill(0);
    return tensor;
  }
}

function roundUp(n: number, unit: number): number {
  return Math.ceil(n / unit) * unit;
}
