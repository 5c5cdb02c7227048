/**
 * Sums of gradients over replicas, in float32 or with BF16 on the wire (MegaScale-MoE, EuroSys 2026,
 * section 5): each replica rounds its gradients once, and terms are summed in float32 where they arrive.
 * A ring in BF16 would move the same bytes and round at every step of the way.
 */
import type { Communicator, Work } from "@trireme/collectives";
import {
  type GradientBytes,
  type GradientPlace,
  type Gradients,
  addGradients,
  allocateGradients,
  copyGradients,
  freeGradients,
  gradientElements,
  gradientPart,
} from "../memory/gradient-block.ts";
import { afterwards, over } from "./works.ts";

/** What is summed, and where the sum goes. */
export interface GradientReduction extends GradientPlace {
  readonly replicas: Communicator;
  /** Every replica's gradients, of the same length; as long as their segments together. What they are afterwards is not said. */
  readonly whole: Gradients;
  /** Where this replica's sums go; it may lie at its place in `whole`. */
  readonly segment: Gradients;
  /** Where the segment begins in `whole`. */
  readonly start: number;
  /** Adds the sums to what the segment has. */
  readonly adds: boolean;
  /** Bytes of a gradient on its way. */
  readonly wire: GradientBytes;
  /** Every replica gets all sums, not those of its segment alone. */
  readonly toAll: boolean;
}

/**
 * Starts to sum the gradients of a segment over the replicas. In BF16 each term errs by at most 2^-8 of
 * itself, and a sum that all replicas get, or that is kept in BF16, by as much once more.
 */
export function reduceGradients(o: GradientReduction): Work {
  const { pool, replicas, whole, wire, toAll } = o;
  if (replicas.ranks === 1) {
    deliver(o, gradientPart(whole, o.start, o.segment.size));
    return over;
  }
  const sent = wire === whole.each ? whole : allocateGradients(pool, whole.size, wire);
  if (sent !== whole) copyGradients(o, whole, sent);
  const work = toAll ? allReduce(o, sent) : wire === 2 ? exchange(o, sent) : scatter(o, sent);
  if (sent === whole) return work;
  return afterwards(work, () => freeGradients(pool, sent));
}

function allReduce(o: GradientReduction, sent: Gradients): Work {
  const { pool, replicas, start, segment } = o;
  return afterwards(replicas.allReduce(gradientElements(pool.memory, sent)), () => {
    deliver(o, gradientPart(sent, start, segment.size));
  });
}

/** Reduce-scatter in float32. */
function scatter(o: GradientReduction, sent: Gradients): Work {
  const { pool, replicas, segment, adds } = o;
  const isThere = segment.each === 4 && !adds;
  const sums = isThere ? segment : allocateGradients(pool, segment.size, 4);
  // Only now: a memory that grows has another buffer.
  const [from, to] = [sent, sums].map(
    ({ pointer, size }) => new Float32Array(pool.memory.buffer, pointer, size),
  );
  return afterwards(replicas.reduceScatter(from!, to!), () => {
    if (isThere) return;
    deliver(o, sums);
    freeGradients(pool, sums);
  });
}

/** Reduce-scatter in BF16: all-to-all, summed in float32 in the order of rank. */
function exchange(o: GradientReduction, sent: Gradients): Work {
  const { pool, replicas, segment } = o;
  const received = allocateGradients(pool, sent.size, 2);
  const { buffer } = pool.memory;
  const [from, to] = [sent, received].map(
    ({ pointer, size }) => new Uint16Array(buffer, pointer, size),
  );
  return afterwards(replicas.allToAll(from!, to!), () => {
    const count = Math.min(segment.size, partElements);
    const sums = allocateGradients(pool, count, 4);
    for (let at = 0; at < segment.size; at += count) {
      const part = gradientPart(sums, 0, Math.min(count, segment.size - at));
      const term = (rank: number): Gradients =>
        gradientPart(received, rank * segment.size + at, part.size);
      copyGradients(o, term(0), part);
      for (let rank = 1; rank < replicas.ranks; rank++) addGradients(o, term(rank), part);
      deliver({ ...o, segment: gradientPart(segment, at, part.size) }, part);
    }
    freeGradients(pool, sums);
    freeGradients(pool, received);
  });
}

/** Elements that are summed at a time. */
const partElements = 16_384;

/** Brings sums to where they are to be, or to what is there. */
function deliver(o: GradientReduction, sums: Gradients): void {
  if (o.adds) addGradients(o, sums, o.segment);
  else if (sums.pointer !== o.segment.pointer) copyGradients(o, sums, o.segment);
}
