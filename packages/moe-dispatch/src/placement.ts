/**
 * A placement: which expert each replica slot of each rank holds, for every layer. Legend: L layers,
 * E experts, P replicas (slots of all ranks), R ranks with P/R slots each, in order; X the most
 * replicas of one expert.
 */
import { TriremeError } from "@trireme/core";
import { requireDivisible, requireInteger, requireLength } from "./shape.ts";

/** Experts on ranks. */
export interface Placement {
  readonly layers: number;
  readonly experts: number;
  readonly replicas: number;
  readonly ranks: number;
  /** [L, P] expert of each slot. */
  readonly expertOf: Int32Array;
  /** [L, E] replicas of each expert, at least one. */
  readonly replicaCounts: Int32Array;
  /** X. */
  readonly mostReplicas: number;
  /** [L, E, X] slots of each expert, −1 after the last. */
  readonly slotsOf: Int32Array;
}

/** What a placement is made from. */
export interface PlacementOptions {
  readonly layers: number;
  readonly experts: number;
  readonly ranks: number;
  /** [L, P] expert of each slot; every expert of every layer must occur. */
  readonly expertOf: Int32Array;
  /** [L, P] place of each slot among its expert's replicas; default in order of slots. */
  readonly replicaOf?: Int32Array;
}

/** Checks a placement and indexes it by expert. */
export function definePlacement(o: PlacementOptions): Placement {
  const { layers, experts, ranks, expertOf } = o;
  requireInteger("layers", layers, 1);
  requireInteger("experts", experts, 1);
  requireInteger("ranks", ranks, 1);
  const replicas = expertOf.length / layers;
  requireInteger(`replicas (${expertOf.length} slots of ${layers} layers)`, replicas, experts);
  requireDivisible("replicas", replicas, "ranks", ranks);
  const replicaCounts = new Int32Array(layers * experts);
  for (let i = 0; i < expertOf.length; i++) {
    const e = expertOf[i]!;
    if (e < 0 || e >= experts) {
      throw new TriremeError(
        "MOE_EXPERT",
        `slot ${i % replicas} of layer ${Math.floor(i / replicas)} holds expert ${e}; experts are 0..${experts - 1}`,
      );
    }
    replicaCounts[Math.floor(i / replicas) * experts + e]!++;
  }
  const missing = replicaCounts.indexOf(0);
  if (missing >= 0) {
    throw new TriremeError(
      "MOE_PLACEMENT",
      `layer ${Math.floor(missing / experts)} has no replica of expert ${missing % experts}; every expert needs one`,
    );
  }
  const mostReplicas = replicaCounts.reduce((most, n) => Math.max(most, n), 0);
  const slotsOf = new Int32Array(layers * experts * mostReplicas).fill(-1);
  if (o.replicaOf !== undefined) {
    requireLength("replicaOf", o.replicaOf, expertOf.length, `${layers} x ${replicas} slots`);
  }
  const seen = new Int32Array(layers * experts);
  for (let i = 0; i < expertOf.length; i++) {
    const expert = Math.floor(i / replicas) * experts + expertOf[i]!;
    const place = o.replicaOf?.[i] ?? seen[expert]!++;
    const count = replicaCounts[expert]!;
    if (place < 0 || place >= count || slotsOf[expert * mostReplicas + place] !== -1) {
      throw new TriremeError(
        "MOE_PLACEMENT",
        `slot ${i % replicas} of layer ${Math.floor(i / replicas)} is replica ${place} of expert ${expertOf[i]}, which has ${count}; its replicas are 0..${count - 1}, each once`,
      );
    }
    slotsOf[expert * mostReplicas + place] = i % replicas;
  }
  return { layers, experts, replicas, ranks, expertOf, replicaCounts, mostReplicas, slotsOf };
}

/** The placement without replicas: experts in order, E/R on each rank. */
export function contiguousPlacement(o: {
  readonly layers: number;
  readonly experts: number;
  readonly ranks: number;
}): Placement {
  requireInteger("layers", o.layers, 1);
  requireInteger("experts", o.experts, 1);
  const expertOf = Int32Array.from({ length: o.layers * o.experts }, (_, i) => i % o.experts);
  return definePlacement({ ...o, expertOf });
}

/**
 * Load of each rank [L, R], when the load of each expert `loads` [L, E] is shared equally by its
 * replicas.
 */
export function rankLoads(placement: Placement, loads: ArrayLike<number>): Float64Array {
  const { layers, experts, replicas, ranks, expertOf, replicaCounts } = placement;
  requireLength("loads", loads, layers * experts, `${layers} layers x ${experts} experts`);
  const perRank = replicas / ranks;
  const out = new Float64Array(layers * ranks);
  for (let i = 0; i < expertOf.length; i++) {
    const layer = Math.floor(i / replicas);
    const expert = layer * experts + expertOf[i]!;
    const rank = Math.floor((i % replicas) / perRank);
    out[layer * ranks + rank]! += loads[expert]! / replicaCounts[expert]!;
  }
  return out;
}
