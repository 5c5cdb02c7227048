/**
 * Optimizer states on the host: outside of the rank's memory, which stands for a device's, lie the
 * moments and a master copy of what the rank updates, and the update is computed there; gradients go
 * out before it and weights come back after it (Ren et al., ZeRO-Offload, USENIX ATC 2021, section 4),
 * rounded where the rank works with BF16.
 */
import { copyBytes } from "@trireme/collectives/node";
import type { Bytes, Seconds } from "@trireme/core";
import type { Bucket, Segment, UpdatePlace } from "./bucket.ts";
import type { BucketOptions } from "./bucket-options.ts";
import { type Gradients, allocateGradients } from "../memory/gradient-block.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { HalfValues } from "./half-values.ts";
import { Pool } from "../memory/pool.ts";
import { createRankMemory } from "../memory/rank-memory.ts";
import type { SpanLog } from "../layout/span-log.ts";
import { type Tensor, view } from "../memory/tensor.ts";

/** Largest address, of 32 bits. */
const limit = 2 ** 32;

/** Elements that are rounded at a time: what is rounded is copied from the processor's cache. */
const roundedElements = 2 ** 15;

/** The memory of a rank's host: as many WebAssembly memories as it takes, each with kernels of its own. */
export class HostMemory {
  readonly #createKernels: (memory: WebAssembly.Memory) => Kernels;
  #last: Omit<UpdatePlace, "segment"> | undefined;

  constructor(createKernels: (memory: WebAssembly.Memory) => Kernels) {
    this.#createKernels = createKernels;
  }

  /** Room for so many bytes in one memory, and working space beside them. */
  for(bytes: Bytes): Omit<UpdatePlace, "segment"> {
    const reserve = bytes / 16 + 2 ** 20;
    if (this.#last === undefined || this.#last.pool.peak + bytes + reserve > limit) {
      const { memory, base } = createRankMemory();
      this.#last = { pool: new Pool(memory, base), kernels: this.#createKernels(memory) };
    }
    return this.#last;
  }
}

/** What a bucket has on the host. */
export class HostPlace implements UpdatePlace {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly segment: Segment;
  readonly #device: WebAssembly.Memory;
  readonly #halves: HalfValues | undefined;

  /**
   * @param own Where the rank's memory has the values that the masters begin with; it is read now only.
   * @param halves What the rank works with, where it keeps no values in float32.
   */
  constructor(
    host: HostMemory,
    device: WebAssembly.Memory,
    own: Pick<Segment, "start" | "value"> & Pick<BucketOptions, "gradientBytes">,
    halves?: HalfValues,
  ) {
    const { start, value, gradientBytes = 4 } = own;
    const { pool, kernels } = host.for(4 * value.size * 4);
    [this.pool, this.kernels] = [pool, kernels];
    this.#device = device;
    this.#halves = halves;
    const block = (): Tensor => {
      const tensor = pool.allocate([value.size]);
      view(pool.memory, tensor).fill(0);
      return tensor;
    };
    this.segment = {
      start,
      count: value.size,
      value: block(),
      gradient: allocateGradients(pool, value.size, gradientBytes),
      firstMoment: block(),
      secondMoment: block(),
    };
    copy(device, value, pool.memory, this.segment.value);
  }

  /** Copies the gradients, summed, to the host. */
  takeGradients(gradient: Gradients): Bytes {
    return copy(this.#device, gradient, this.pool.memory, this.segment.gradient);
  }

  /** Copies the masters to the rank's values; rounded, to working ones, while there is room for them. */
  giveValues(value: Tensor): Bytes {
    if (this.#halves === undefined) {
      return copy(this.pool.memory, this.segment.value, this.#device, value);
    }
    return this.#halves.isOpen ? this.#giveRounded(this.#halves) : 0;
  }

  #giveRounded(halves: HalfValues): Bytes {
    const { pool, kernels } = this;
    const { start, count, value } = this.segment;
    const rounded = pool.scratch(Math.min(count, roundedElements) * 2);
    for (let from = 0; from < count; from += roundedElements) {
      const length = Math.min(roundedElements, count - from);
      kernels.toBf16(value.pointer + from * 4, rounded, length);
      const bytes = new Uint8Array(pool.memory.buffer, rounded, length * 2);
      copyBytes(halves.bytes(start + from, length), 0, bytes);
    }
    return count * 2;
  }
}

/**
 * Before an update on the host its gradients go there, after it the weights come back; where buckets
 * are updated in the rank's memory, nothing moves.
 */
export function moveState(
  action: "TO_HOST" | "TO_DEVICE",
  buckets: readonly Bucket[],
  spans: SpanLog,
  now: () => Seconds,
): void {
  if (buckets.every(({ host }) => host === undefined)) return;
  const start = now();
  let bytes = 0;
  for (const { host, segment } of buckets) {
    if (host === undefined) continue;
    bytes +=
      action === "TO_HOST" ? host.takeGradients(segment.gradient) : host.giveValues(segment.value);
  }
  spans.add(action, -1, -1, start, now(), bytes, 0);
}

/** Returns the bytes that it copied. */
function copy(
  source: WebAssembly.Memory,
  from: Tensor | Gradients,
  target: WebAssembly.Memory,
  to: Tensor | Gradients,
): Bytes {
  const bytes = from.size * ("each" in from ? from.each : 4);
  const values = new Uint8Array(source.buffer, from.pointer, bytes);
  copyBytes(new Uint8Array(target.buffer, to.pointer, bytes), 0, values);
  return bytes;
}
