/**
 * Trained tensors that are shared, reduced and updated together: those of one stage that the same
 * ranks hold. Values, gradients and moments each lie in one flat block. With ZeRO (Rajbhandari et
 * al., 2020) the replicas share out the update by equal segments of the block: moments exist for the
 * own segment only (1), so do gradients once they are reduced (2) and values outside of use (3).
 */
import type { Communicator, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import { BucketGradients } from "./bucket-gradients.ts";
import type { BucketOptions } from "./bucket-options.ts";
import { BucketParameter } from "./bucket-parameter.ts";
import type { Gradients } from "../memory/gradient-block.ts";
import { HalfValues } from "./half-values.ts";
import { HostPlace } from "./host-place.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { Pool } from "../memory/pool.ts";
import { initialize } from "../parameters/initial-values.ts";
import type { Range } from "../memory/slice.ts";
import { type Tensor, part, view } from "../memory/tensor.ts";

/** The segment of a bucket that this rank updates. */
export interface Segment {
  /** Offset in the flat block. */
  readonly start: number;
  /** Elements. */
  readonly count: number;
  readonly value: Tensor;
  readonly gradient: Gradients;
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
  readonly gradients: BucketGradients;
  readonly #options: BucketOptions;
  #values: Tensor | undefined;

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
        : new HostPlace(host, pool.memory, { start, value, ...options }, this.halves);
    const isApart = zero === 3 || this.halves !== undefined;
    if (isApart) {
      const isElsewhere = this.host !== undefined && this.halves !== undefined;
      value = isElsewhere ? nothing : this.#block(count);
      pool.copy(values.pointer + start * 4, value.pointer, value.size);
      pool.free(values);
    }
    this.#values = isApart ? undefined : values;
    this.gradients = new BucketGradients(options, this.size, { start, count });
    const moment = (): Tensor => (frozen || this.host !== undefined ? nothing : this.#block(count));
    const [firstMoment, secondMoment] = [moment(), moment()];
    const gradient = this.gradients.own;
    this.segment = { start, count, value, gradient, firstMoment, secondMoment };
    this.place = this.host ?? { pool, kernels: options.kernels, segment: this.segment };
  }

  /** The whole values; there are none while they are sharded. */
  get values(): Tensor {
    if (this.#values === undefined) throw new Error(`${this.#name} is sharded`);
    return this.#values;
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

  /** Bytes of the whole values. */
  get bytes(): Bytes {
    return this.size * (this.halves === undefined ? 4 : 2);
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
    const { pool, kernels } = this.#options;
    const tensor = pool.allocate([count]);
    kernels.fill(tensor.pointer, 0, count);
    return tensor;
  }
}

function roundUp(n: number, unit: number): number {
  return Math.ceil(n / unit) * unit;
}
