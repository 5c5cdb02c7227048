/** What it takes to go from one placement to another: each rank fetches the experts new to it. */
import { TriremeError, type Bytes } from "@trireme/core";
import type { Placement } from "./placement.ts";
import { requireNumber } from "./shape.ts";

/** Two placements of the same layers and experts on the same ranks. */
export interface MigrationOptions {
  readonly from: Placement;
  readonly to: Placement;
  /** Weights (and, in training, optimizer state) of one expert. */
  readonly bytesPerExpert: Bytes;
  /** Cost of a byte from rank to rank; the source is a rank with the least. Default the same for all. */
  readonly cost?: (from: number, to: number) => number;
}

/** The moves, in columns, and their sums. */
export interface Migration {
  readonly layers: Int32Array;
  readonly experts: Int32Array;
  readonly sources: Int32Array;
  readonly targets: Int32Array;
  readonly bytes: Bytes;
  /** [R] bytes that each rank sends. */
  readonly sent: Float64Array;
  /** [R] bytes that each rank receives. */
  readonly received: Float64Array;
}

/**
 * Plans the moves. A rank that holds an expert already fetches nothing for it, in whatever slot; a
 * second replica on the same rank is a local copy. Of the sources of least cost it takes the one
 * that has sent least so far, then the lowest.
 */
export function planMigration(o: MigrationOptions): Migration {
  const { from, to, bytesPerExpert } = o;
  requireNumber("bytesPerExpert", bytesPerExpert, 0);
  for (const key of ["layers", "experts", "ranks"] as const) {
    if (from[key] === to[key]) continue;
    throw new TriremeError(
      "MOE_PLACEMENT",
      `the placements differ in ${key}: ${from[key]} and ${to[key]}; a migration needs the same`,
    );
  }
  const { layers, ranks } = from;
  const moves: number[][] = [[], [], [], []];
  const sent = new Float64Array(ranks);
  const received = new Float64Array(ranks);
  const slots = to.replicas / ranks;
  for (let layer = 0; layer < layers; layer++) {
    for (let target = 0; target < ranks; target++) {
      const start = layer * to.replicas + target * slots;
      for (let i = start; i < start + slots; i++) {
        const e = to.expertOf[i]!;
        if (to.expertOf.indexOf(e, start) < i) continue; // the second replica here
        const source = sourceOf(o, layer, e, target, sent);
        if (source === target) continue;
        [layer, e, source, target].forEach((value, column) => moves[column]!.push(value));
        sent[source]! += bytesPerExpert;
        received[target]! += bytesPerExpert;
      }
    }
  }
  const [layerColumn, expertColumn, sources, targets] = moves.map((m) => Int32Array.from(m));
  return {
    layers: layerColumn!,
    experts: expertColumn!,
    sources: sources!,
    targets: targets!,
    bytes: sources!.length * bytesPerExpert,
    sent,
    received,
  };
}

/** The rank to fetch an expert from; `target` itself when it holds it. */
function sourceOf(
  o: MigrationOptions,
  layer: number,
  e: number,
  target: number,
  sent: Float64Array,
): number {
  const { from } = o;
  const slots = from.replicas / from.ranks;
  const at = (layer * from.experts + e) * from.mostReplicas;
  let best = -1;
  let bestCost = Infinity;
  for (let x = at; x < at + from.replicaCounts[layer * from.experts + e]!; x++) {
    const rank = Math.floor(from.slotsOf[x]! / slots);
    if (rank === target) return rank;
    const cost = o.cost?.(rank, target) ?? 0;
    if (!(cost >= 0)) throw badCost(rank, target, cost);
    const better =
      cost < bestCost ||
      (cost === bestCost &&
        (sent[rank]! < sent[best]! || (sent[rank] === sent[best] && rank < best)));
    if (best < 0 || better) {
      best = rank;
      bestCost = cost;
    }
  }
  return best;
}

/** The error for a cost function that gives no cost. */
export function badCost(from: number, to: number, cost: number): TriremeError {
  return new TriremeError(
    "MOE_RANGE",
    `cost(${from}, ${to}) is ${cost}; a cost must not be negative, such as 0`,
  );
}
