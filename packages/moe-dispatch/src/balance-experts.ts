/**
 * Expert-parallel load balancing (EPLB, deepseek-ai/EPLB; DeepSeek-V3 §3.4): busy experts get more
 * replicas, and replicas are packed on ranks so that loads are level. Hierarchical where the expert
 * groups divide over the hosts: groups to hosts, replicas within a host, then to its ranks, so that
 * group-limited routing stays within few hosts; global otherwise.
 *
 * The result is the reference's, wherever that puts no expert twice on one rank. Where it does
 * (EPLB issue 22), the replicas are swapped apart and the ranks levelled again. All ties go to the
 * lowest index, so that no sort decides.
 */
import { TriremeError } from "@trireme/core";
import { hasDuplicates, levelPacks, separate } from "./improve-packing.ts";
import { type Packing, packEvenly } from "./pack.ts";
import { type Placement, definePlacement } from "./placement.ts";
import { requireDivisible, requireInteger, requireLength } from "./shape.ts";

/** Loads, and the ranks to place experts on. */
export interface BalanceOptions {
  /** [L, E] load of each expert, such as its tokens; not negative. */
  readonly loads: ArrayLike<number>;
  readonly layers: number;
  /** Slots of all ranks together, at least E. */
  readonly replicas: number;
  readonly ranks: number;
  /** Expert groups (of group-limited routing); default 1. */
  readonly groups?: number;
  readonly hosts?: number;
  /** Keeps replicas of one expert on different ranks, as far as there are ranks; default true. */
  readonly distinct?: boolean;
  /** Levels the ranks further by swaps after the greedy packing; default false, the reference's. */
  readonly level?: boolean;
}

/** Places replicas of every layer's experts on ranks. */
export function balanceExperts(o: BalanceOptions): Placement {
  const { loads, layers, replicas, ranks } = o;
  const wanted = { groups: o.groups ?? 1, hosts: o.hosts ?? 1 };
  requireInteger("layers", layers, 1);
  requireInteger("ranks", ranks, 1);
  requireInteger("groups", wanted.groups, 1);
  requireInteger("hosts", wanted.hosts, 1);
  const experts = loads.length / layers;
  requireInteger(`experts (${loads.length} loads of ${layers} layers)`, experts, 1);
  requireLength("loads", loads, layers * experts, `${layers} layers x ${experts} experts`);
  requireInteger("replicas", replicas, experts);
  requireDivisible("replicas", replicas, "ranks", ranks);
  requireDivisible("experts", experts, "groups", wanted.groups);
  requireDivisible("ranks", ranks, "hosts", wanted.hosts);
  for (let i = 0; i < loads.length; i++) {
    if (loads[i]! >= 0 && loads[i]! < Infinity) continue;
    throw new TriremeError(
      "MOE_RANGE",
      `load of expert ${i % experts} in layer ${Math.floor(i / experts)} is ${loads[i]}; loads must be finite and not negative, such as 0`,
    );
  }
  const { groups, hosts } = wanted.groups % wanted.hosts === 0 ? wanted : { groups: 1, hosts: 1 };

  const expertOf = new Int32Array(layers * replicas);
  const replicaOf = new Int32Array(layers * replicas);
  const weights = new Float64Array(experts);
  for (let layer = 0; layer < layers; layer++) {
    for (let e = 0; e < experts; e++) weights[e] = loads[layer * experts + e]!;
    const order = expertsByHost(weights, groups, hosts);
    const perHost = experts / hosts;
    const slots = replicas / hosts;
    for (let host = 0; host < hosts; host++) {
      const members = order.subarray(host * perHost, (host + 1) * perHost);
      const start = layer * replicas + host * slots;
      placeHost(
        weights,
        members,
        ranks / hosts,
        o.distinct ?? true,
        o.level ?? false,
        expertOf.subarray(start, start + slots),
        replicaOf.subarray(start, start + slots),
      );
    }
  }
  return definePlacement({ layers, experts, ranks, expertOf, replicaOf });
}

/** Experts in order of host, after packing their groups. */
function expertsByHost(weights: Float64Array, groups: number, hosts: number): Int32Array {
  const size = weights.length / groups;
  const totals = new Float64Array(groups);
  for (let e = 0; e < weights.length; e++) totals[Math.floor(e / size)]! += weights[e]!;
  const { packOf, placeOf } = packEvenly(totals, hosts);
  const order = new Int32Array(weights.length);
  for (let g = 0; g < groups; g++) {
    const at = (packOf[g]! * (groups / hosts) + placeOf[g]!) * size;
    for (let i = 0; i < size; i++) order[at + i] = g * size + i;
  }
  return order;
}

/** Replicates the experts of one host and packs the replicas on its ranks. */
function placeHost(
  weights: Float64Array,
  members: Int32Array,
  ranks: number,
  distinct: boolean,
  level: boolean,
  expertOf: Int32Array,
  replicaOf: Int32Array,
): void {
  const slots = expertOf.length;
  const kinds = new Int32Array(slots);
  const numbers = new Int32Array(slots);
  const counts = new Int32Array(members.length).fill(1);
  for (let i = 0; i < slots; i++) {
    let kind = i;
    if (i >= members.length) {
      // The expert with the largest load per replica gets the next one.
      kind = 0;
      for (let m = 1; m < members.length; m++) {
        if (weights[members[m]!]! / counts[m]! > weights[members[kind]!]! / counts[kind]!) kind = m;
      }
      numbers[i] = counts[kind]!++;
    }
    kinds[i] = kind;
  }
  const shares = Float64Array.from(kinds, (kind) => weights[members[kind]!]! / counts[kind]!);
  const packing = packReplicas(shares, kinds, ranks, distinct, level);
  for (let i = 0; i < slots; i++) {
    const slot = packing.packOf[i]! * (slots / ranks) + packing.placeOf[i]!;
    expertOf[slot] = members[kinds[i]!]!;
    replicaOf[slot] = numbers[i]!;
  }
}

/** Packs replicas as the reference does; the better of two ways where they must be kept apart. */
function packReplicas(
  shares: Float64Array,
  kinds: Int32Array,
  ranks: number,
  distinct: boolean,
  level: boolean,
): Packing {
  const greedy = packEvenly(shares, ranks);
  if (!distinct || !hasDuplicates(greedy, kinds, ranks)) {
    if (level) levelPacks(greedy, shares, kinds, ranks, distinct);
    return greedy;
  }
  const target = heaviestLoad(greedy, shares, ranks);
  const apart = packEvenly(shares, ranks, kinds);
  let best: Packing | undefined;
  let least = Infinity;
  for (const packing of [greedy, apart]) {
    separate(packing, shares, kinds, ranks);
    levelPacks(packing, shares, kinds, ranks, distinct, target);
    const heaviest = heaviestLoad(packing, shares, ranks);
    if (best !== undefined && heaviest >= least) continue;
    best = packing;
    least = heaviest;
  }
  return best!;
}

function heaviestLoad(packing: Packing, shares: Float64Array, ranks: number): number {
  const loads = new Float64Array(ranks);
  for (let i = 0; i < shares.length; i++) loads[packing.packOf[i]!]! += shares[i]!;
  return loads.reduce((most, load) => Math.max(most, load), 0);
}
