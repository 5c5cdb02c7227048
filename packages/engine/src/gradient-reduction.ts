/**
 * Sums of gradients over replicas with BF16 on the wire (MegaScale-MoE, EuroSys 2026, section 5): each
 * replica rounds its float32 gradients once, and terms are summed in float32 where they arrive. A ring
 * in BF16 would move the same bytes and round at every step of the way.
 */
import type { Communicator, Work } from "@trireme/collectives";
import type { Kernels } from "./kernels/kernels.ts";
import type { Pool } from "./pool.ts";
import type { Tensor } from "./tensor.ts";

/** What is summed, and where the sum goes. */
export interface GradientReduction {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly replicas: Communicator;
  /** Every replica's gradients, of the same length; as long as their segments together. */
  readonly whole: Tensor;
  /** Where this replica's sum goes; it may lie in `whole`. */
  readonly segment: Tensor;
}

/**
 * Starts to give each replica the sum of its segment: all-to-all in BF16, summed in float32 in the
 * order of rank. Each term errs by at most 2^-8 of itself.
 */
export function reduceScatterBf16(o: GradientReduction): Work {
  const { pool, kernels, replicas, whole, segment } = o;
  const bytes = whole.size * 2;
  const packed = pool.allocateBytes(bytes);
  const received = pool.allocateBytes(bytes);
  kernels.toBf16(whole.pointer, packed, whole.size);
  // Only now: a memory that grows has another buffer.
  const { buffer } = pool.memory;
  const elements = (pointer: number): Uint16Array => new Uint16Array(buffer, pointer, whole.size);
  return afterwards(replicas.allToAll(elements(packed), elements(received)), () => {
    const { pointer, size } = segment;
    kernels.fromBf16(received, pointer, size);
    const term = pool.allocate([size]);
    for (let r = 1; r < replicas.ranks; r++) {
      kernels.fromBf16(received + r * size * 2, term.pointer, size);
      kernels.accumulate(term.pointer, pointer, size);
    }
    pool.free(term);
    pool.freeBytes(packed, bytes);
    pool.freeBytes(received, bytes);
  });
}

/**
 * Starts to sum all gradients for every replica; `start` is where its segment begins. The communicator
 * sums in float32; sums are rounded once more on their way to the replicas.
 */
export function allReduceBf16(o: GradientReduction & { readonly start: number }): Work {
  const { pool, kernels, replicas, whole, segment, start } = o;
  const bytes = whole.size * 2;
  const packed = pool.allocateBytes(bytes);
  kernels.toBf16(whole.pointer, packed, whole.size);
  const halves = new Uint16Array(pool.memory.buffer, packed, whole.size);
  return afterwards(replicas.allReduce(halves), () => {
    kernels.fromBf16(packed + start * 2, segment.pointer, segment.size);
    pool.freeBytes(packed, bytes);
  });
}

/** Starts to sum all gradients for every replica, in float32. */
export function allReduceFloat32(o: GradientReduction & { readonly start: number }): Work {
  const { pool, replicas, whole, segment, start } = o;
  const values = new Float32Array(pool.memory.buffer, whole.pointer, whole.size);
  return afterwards(replicas.allReduce(values), () => {
    const from = whole.pointer + start * 4;
    if (from !== segment.pointer) pool.copy(from, segment.pointer, segment.size);
  });
}

/** A call and what is done when it is over, by the first to wait for it. */
export function afterwards(work: Work, finish: () => void): Work {
  let waits = true;
  return {
    get done(): boolean {
      return work.done;
    },
    wait: (): void => {
      work.wait();
      if (waits) finish();
      waits = false;
    },
  };
}
