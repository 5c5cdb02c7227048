/**
 * Placement aware of the network: experts move towards the ranks whose tokens they serve. Which
 * rank pays what for a row is the caller's function, so that a topology, a measurement or a table
 * can be behind it. Starting from a placement (level, say from `balanceExperts`), slots are swapped
 * between ranks while that lowers the cost and keeps the loads within a limit. Legend as in
 * `placement.ts`.
 */
import { badCost } from "./migration.ts";
import { type Placement, definePlacement, rankLoads } from "./placement.ts";
import { requireLength, requireNumber } from "./shape.ts";

/** Traffic and its cost. */
export interface PlaceByCostOptions {
  readonly placement: Placement;
  /** [L, R, E] rows from each source rank to each expert; replicas share them equally. */
  readonly traffic: ArrayLike<number>;
  /** Cost of a row from rank to rank, such as 0 on the rank, 1 in its host, 8 elsewhere. */
  readonly cost: (from: number, to: number) => number;
  /** How far a rank's load may pass the mean, as a fraction; the load it has already is always allowed. Default 0.05. */
  readonly tolerance?: number;
}

/** A placement, and the cost of its traffic before and after. */
export interface CostedPlacement {
  readonly placement: Placement;
  readonly before: number;
  readonly after: number;
}

/** Swaps slots between ranks until no swap lowers the cost; never puts an expert twice on a rank. */
export function placeByCost(o: PlaceByCostOptions): CostedPlacement {
  const { placement, traffic } = o;
  const { layers, experts, replicas, ranks } = placement;
  const tolerance = o.tolerance ?? 0.05;
  requireNumber("tolerance", tolerance, 0);
  requireLength("traffic", traffic, layers * ranks * experts, `${layers} x ${ranks} x ${experts}`);
  // One that is none would swap for ever.
  for (let i = 0; i < traffic.length; i++) requireNumber(`traffic ${i}`, traffic[i]!, 0);
  const costs = new Float64Array(ranks * ranks);
  for (let from = 0; from < ranks; from++) {
    for (let to = 0; to < ranks; to++) {
      const cost = o.cost(from, to);
      if (!(cost >= 0 && cost < Infinity)) throw badCost(from, to, cost);
      costs[from * ranks + to] = cost;
    }
  }
  const loads = new Float64Array(layers * experts);
  for (let i = 0; i < traffic.length; i++) {
    loads[Math.floor(i / (ranks * experts)) * experts + (i % experts)]! += traffic[i]!;
  }
  const perRank = rankLoads(placement, loads);
  const expertOf = placement.expertOf.slice();
  let before = 0;
  let after = 0;
  for (let layer = 0; layer < layers; layer++) {
    const slots = expertOf.subarray(layer * replicas, (layer + 1) * replicas);
    const shares = slots.map((e) => placement.replicaCounts[layer * experts + e]!);
    const price = prices(traffic, layer, ranks, experts, costs);
    const priceOf = (slot: number, rank: number): number =>
      price[slots[slot]! * ranks + rank]! / shares[slot]!;
    before += total(replicas, ranks, priceOf);
    const load = perRank.subarray(layer * ranks, (layer + 1) * ranks);
    swapDown(
      slots,
      shares,
      loads.subarray(layer * experts, (layer + 1) * experts),
      load,
      tolerance,
      priceOf,
    );
    after += total(replicas, ranks, priceOf);
  }
  return { placement: definePlacement({ layers, experts, ranks, expertOf }), before, after };
}

/** Cost of each expert's whole traffic, were it on each rank: [E, R]. */
function prices(
  traffic: ArrayLike<number>,
  layer: number,
  ranks: number,
  experts: number,
  costs: Float64Array,
): Float64Array {
  const price = new Float64Array(experts * ranks);
  for (let from = 0; from < ranks; from++) {
    for (let e = 0; e < experts; e++) {
      const rows = traffic[(layer * ranks + from) * experts + e]!;
      if (rows === 0) continue;
      for (let to = 0; to < ranks; to++) {
        price[e * ranks + to]! += rows * costs[from * ranks + to]!;
      }
    }
  }
  return price;
}

function total(replicas: number, ranks: number, priceOf: (s: number, r: number) => number): number {
  let sum = 0;
  for (let s = 0; s < replicas; s++) sum += priceOf(s, Math.floor(s / (replicas / ranks)));
  return sum;
}

/** Swaps the experts of two slots wherever the cost falls and the loads allow it, to a fixed point. */
function swapDown(
  slots: Int32Array,
  shares: Int32Array,
  loads: Float64Array,
  load: Float64Array,
  tolerance: number,
  priceOf: (slot: number, rank: number) => number,
): void {
  const each = slots.length / load.length;
  const mean = load.reduce((sum, l) => sum + l, 0) / load.length;
  const limit = Math.max(mean * (1 + tolerance), ...load);
  const holds = (rank: number, e: number): boolean =>
    slots.subarray(rank * each, (rank + 1) * each).includes(e);
  for (let swapped = true; swapped;) {
    swapped = false;
    for (let a = 0; a < slots.length; a++) {
      for (let b = a + 1; b < slots.length; b++) {
        const [p, q] = [Math.floor(a / each), Math.floor(b / each)];
        if (p === q || slots[a] === slots[b]) continue;
        const stays = priceOf(a, p) + priceOf(b, q);
        // Rounding must not be taken for a gain, or swaps could go on for ever.
        if (priceOf(a, q) + priceOf(b, p) >= stays * (1 - 1e-12)) continue;
        const moved = loads[slots[a]!]! / shares[a]! - loads[slots[b]!]! / shares[b]!;
        if (load[p]! - moved > limit || load[q]! + moved > limit) continue;
        if (holds(p, slots[b]!) || holds(q, slots[a]!)) continue;
        load[p]! -= moved;
        load[q]! += moved;
        [slots[a], slots[b]] = [slots[b]!, slots[a]!];
        [shares[a], shares[b]] = [shares[b]!, shares[a]!];
        swapped = true;
      }
    }
  }
}
