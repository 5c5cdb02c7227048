/**
 * The ring: neighbours pass chunks round, n - 1 steps to sum them, n - 1 to spread them; each rank
 * sends 2 (n - 1) / n of the buffer, the least there is (Patarasuk and Yuan, JPDC 2009). In step t
 * of the sum the rank at place p sends chunk (p - t) mod n, so that place p ends with chunk p + 1.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks, checkRoot } from "./plan.ts";

/** Options of the ring plans. */
export interface RingOptions {
  /** Ranks in the order of the ring; by default 0, 1, 2, … */
  readonly order?: readonly number[];
  /** Several rings, each with its order, that share the buffer equally (NCCL's channels). */
  readonly orders?: readonly (readonly number[])[];
}

function ringOrders(ranks: number, { order, orders }: RingOptions): readonly (readonly number[])[] {
  checkRanks(ranks);
  const all = orders ?? [order ?? Array.from({ length: ranks }, (_, rank) => rank)];
  if (all.length === 0) throw new TriremeError("RING", "0 rings; give at least one order");
  for (const ring of all) {
    const seen = new Set(
      ring.filter((rank) => Number.isInteger(rank) && rank >= 0 && rank < ranks),
    );
    if (ring.length !== ranks || seen.size !== ranks) {
      throw new TriremeError(
        "RING",
        `ring order of ${ring.length} ranks (${seen.size} different) must name each of 0..${ranks - 1} once`,
      );
    }
  }
  return all;
}

/**
 * Passes chunks round for n - 1 steps: in step t place p sends the chunk of place p + first - t.
 * `chunkOf` numbers a ring's chunks by place.
 */
function turn(
  builder: PlanBuilder,
  orders: readonly (readonly number[])[],
  chunkOf: (place: number, ring: number) => number,
  first: number,
  reduce: boolean,
): void {
  const n = orders[0]!.length;
  for (let t = 0; t < n - 1; t++) {
    for (let ring = 0; ring < orders.length; ring++) {
      const order = orders[ring]!;
      for (let p = 0; p < n; p++) {
        const chunk = chunkOf((p + first - t + 2 * n) % n, ring);
        builder.add(order[p]!, order[p + 1 === n ? 0 : p + 1]!, chunk, 1, reduce);
      }
    }
    builder.step();
  }
}

/** Ring all-reduce: `ranks` chunks a ring, 2 (ranks - 1) steps. */
export function ringAllReduce(ranks: number, options: RingOptions = {}): CollectivePlan {
  const orders = ringOrders(ranks, options);
  const chunks = ranks * orders.length;
  const head = { operation: "all-reduce", algorithm: "ring", ranks, chunks } as const;
  const builder = new PlanBuilder(head, 2 * chunks * (ranks - 1));
  const chunkOf = (place: number, ring: number): number => ring * ranks + place;
  turn(builder, orders, chunkOf, 0, true);
  turn(builder, orders, chunkOf, 1, false);
  return builder.finish();
}

/** Ring reduce-scatter: rank r ends with its chunks, one of each ring; ranks - 1 steps. */
export function ringReduceScatter(ranks: number, options: RingOptions = {}): CollectivePlan {
  const orders = ringOrders(ranks, options);
  const chunks = ranks * orders.length;
  const head = { operation: "reduce-scatter", algorithm: "ring", ranks, chunks } as const;
  const builder = new PlanBuilder(head, chunks * (ranks - 1));
  const chunkOf = (place: number, ring: number): number =>
    orders[ring]![place]! * orders.length + ring;
  turn(builder, orders, chunkOf, -1, true);
  return builder.finish();
}

/** Ring all-gather: rank r's chunks, one for each ring, go round; ranks - 1 steps. */
export function ringAllGather(ranks: number, options: RingOptions = {}): CollectivePlan {
  const orders = ringOrders(ranks, options);
  const chunks = ranks * orders.length;
  const head = { operation: "all-gather", algorithm: "ring", ranks, chunks } as const;
  const builder = new PlanBuilder(head, chunks * (ranks - 1));
  const chunkOf = (place: number, ring: number): number =>
    orders[ring]![place]! * orders.length + ring;
  turn(builder, orders, chunkOf, 0, false);
  return builder.finish();
}

/** Broadcast down the chain root, root + 1, …: a chunk per step and link, `pipeline` chunks. */
export function chainBroadcast(ranks: number, root: number, pipeline = 4): CollectivePlan {
  checkRoot(root, ranks);
  if (!Number.isInteger(pipeline) || pipeline < 1) {
    throw new TriremeError("CHAIN", `pipeline ${pipeline} must be an integer of at least 1`);
  }
  const head = {
    operation: "broadcast",
    algorithm: "ring",
    ranks,
    chunks: pipeline,
    root,
  } as const;
  const builder = new PlanBuilder(head, pipeline * (ranks - 1));
  for (let step = 0; ranks > 1 && step < pipeline + ranks - 2; step++) {
    for (let place = 0; place < ranks - 1; place++) {
      const chunk = step - place;
      if (chunk < 0 || chunk >= pipeline) continue;
      builder.add((root + place) % ranks, (root + place + 1) % ranks, chunk, 1, false);
    }
    builder.step();
  }
  return builder.finish();
}
