/**
 * Optimizer states on the host: outside of the rank's memory, which stands for a device's, lie the
 * moments and a master copy of what the rank updates, and the update is computed there; gradients go
 * out before it and weights come back after it (Ren et al., ZeRO-Offload, USENIX ATC 2021, section 4).
 */
import { copyBytes } from "@trireme/collectives/node";
import type { Bytes, Seconds } from "@trireme/core";
import type { Segment, UpdatePlace } from "./bucket.ts";
import type { Kernels } from "./kernels/kernels.ts";
import { Pool } from "./pool.ts";
import { createRankMemory } from "./rank-memory.ts";
import type { SpanLog } from "./span-log.ts";
import { type Tensor, view } from "./tensor.ts";

/** Largest address, of 32 bits. */
const limit = 2 ** 32;

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
  readonly #own: Pick<Segment, "value" | "gradient">;

  /** @param own The bucket's segment in the rank's memory. */
  constructor(
    host: HostMemory,
    device: WebAssembly.Memory,
    own: Pick<Segment, "start" | "value" | "gradient">,
  ) {
    const { start, value } = own;
    const { pool, kernels } = host.for(4 * value.size * 4);
    [this.pool, this.kernels] = [pool, kernels];
    this.#device = device;
    this.#own = own;
    const block = (): Tensor => {
      const tensor = pool.allocate([value.size]);
      view(pool.memory, tensor).fill(0);
      return tensor;
    };
    this.segment = {
      start,
      value: block(),
      gradient: block(),
      firstMoment: block(),
      secondMoment: block(),
    };
    this.takeValues();
  }

  /** Copies the rank's values to the masters: where others than the update have set them. */
  takeValues(): Bytes {
    return copy(this.#device, this.#own.value, this.pool.memory, this.segment.value);
  }

  /** Copies the gradients, summed, to the host. */
  takeGradients(): Bytes {
    return copy(this.#device, this.#own.gradient, this.pool.memory, this.segment.gradient);
  }

  /** Copies the updated masters to the rank's values. */
  giveValues(): Bytes {
    return copy(this.pool.memory, this.segment.value, this.#device, this.#own.value);
  }
}

/**
 * Before an update on the host its gradients go there, after it the weights come back; where buckets
 * are updated in the rank's memory, nothing moves.
 */
export function moveState(
  action: "TO_HOST" | "TO_DEVICE",
  buckets: readonly { readonly host: HostPlace | undefined }[],
  spans: SpanLog,
  now: () => Seconds,
): void {
  const places = buckets.flatMap(({ host }) => host ?? []);
  if (places.length === 0) return;
  const start = now();
  const bytes = places.reduce(
    (sum, place) => sum + (action === "TO_HOST" ? place.takeGradients() : place.giveValues()),
    0,
  );
  spans.add(action, -1, -1, start, now(), bytes, 0);
}

/** Returns the bytes that it copied. */
function copy(
  source: WebAssembly.Memory,
  from: Tensor,
  target: WebAssembly.Memory,
  to: Tensor,
): Bytes {
  const bytes = from.size * 4;
  const values = new Uint8Array(source.buffer, from.pointer, bytes);
  copyBytes(new Uint8Array(target.buffer, to.pointer, bytes), 0, values);
  return bytes;
}
