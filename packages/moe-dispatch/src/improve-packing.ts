/**
 * Swaps that improve a packing of replicas: first apart what should not share a pack, then the
 * heaviest pack against the others, as long as the heaviest gets lighter.
 */
import type { Packing } from "./pack.ts";

/** A packing under improvement: items with a weight and a kind (their expert). */
interface State {
  readonly packs: number;
  readonly packing: Packing;
  readonly weights: Float64Array;
  readonly kinds: Int32Array;
  readonly loads: Float64Array;
  /** [packs, kinds] items of each kind in each pack. */
  readonly held: Int32Array;
  readonly kindCount: number;
}

/** Whether a pack holds two items of one kind. */
export function hasDuplicates(packing: Packing, kinds: Int32Array, packs: number): boolean {
  const s = stateOf(packing, new Float64Array(kinds.length), kinds, packs);
  return s.held.some((n) => n > 1);
}

/**
 * Moves items of one kind to different packs by swaps, each of which leaves fewer duplicates: it
 * ends with none wherever no kind has more items than there are packs. Of the best swaps it takes
 * the one with the least load.
 */
export function separate(
  packing: Packing,
  weights: Float64Array,
  kinds: Int32Array,
  packs: number,
): void {
  const s = stateOf(packing, weights, kinds, packs);
  for (let i = 0; i < kinds.length; i++) {
    while (heldBy(s, s.packing.packOf[i]!, kinds[i]!) > 1) {
      let best = -1;
      let bestGain = 0;
      let bestLoad = Infinity;
      for (let j = 0; j < kinds.length; j++) {
        const gain = fewerDuplicates(s, i, j);
        if (gain <= 0 || gain < bestGain) continue;
        const load = swappedLoad(s, i, j);
        if (gain === bestGain && load >= bestLoad) continue;
        best = j;
        bestGain = gain;
        bestLoad = load;
      }
      if (best < 0) break;
      swap(s, i, best);
    }
  }
}

/**
 * Lowers the load of the heaviest pack by swaps with others. Where none helps and it is above
 * `target`, takes the swap that levels any two packs most, which may open the way. Every swap lowers
 * the sum of the squared loads, so it ends. With `distinct` no swap adds a duplicate.
 */
export function levelPacks(
  packing: Packing,
  weights: Float64Array,
  kinds: Int32Array,
  packs: number,
  distinct: boolean,
  target: number = Infinity,
): void {
  const s = stateOf(packing, weights, kinds, packs);
  for (;;) {
    let heaviest = 0;
    for (let q = 1; q < packs; q++) if (s.loads[q]! > s.loads[heaviest]!) heaviest = q;
    const stuck = !swapBest(s, heaviest, distinct);
    if (stuck && !(s.loads[heaviest]! > target && swapBest(s, -1, distinct))) return;
  }
}

/**
 * Takes the swap that lowers the larger load of its two packs most: of pack `only`, or of all pairs
 * for −1. False when there is none.
 */
function swapBest(s: State, only: number, distinct: boolean): boolean {
  const { packOf } = s.packing;
  let best = 0;
  let from = -1;
  let to = -1;
  for (let i = 0; i < s.weights.length; i++) {
    const p = packOf[i]!;
    if (only >= 0 && p !== only) continue;
    // Rounding must not be taken for a gain, or swaps could go on for ever.
    const least = s.loads[p]! * 1e-12;
    for (let j = 0; j < s.weights.length; j++) {
      const q = packOf[j]!;
      if (s.weights[j]! >= s.weights[i]! || s.loads[q]! >= s.loads[p]!) continue;
      const gain = s.loads[p]! - swappedLoad(s, i, j);
      if (gain <= least || gain <= best || (distinct && fewerDuplicates(s, i, j) < 0)) continue;
      best = gain;
      from = i;
      to = j;
    }
  }
  if (from >= 0) swap(s, from, to);
  return from >= 0;
}

function stateOf(packing: Packing, weights: Float64Array, kinds: Int32Array, packs: number): State {
  let kindCount = 0;
  for (const kind of kinds) kindCount = Math.max(kindCount, kind + 1);
  const loads = new Float64Array(packs);
  const held = new Int32Array(packs * kindCount);
  for (let i = 0; i < kinds.length; i++) {
    loads[packing.packOf[i]!]! += weights[i]!;
    held[packing.packOf[i]! * kindCount + kinds[i]!]!++;
  }
  return { packs, packing, weights, kinds, loads, held, kindCount };
}

function heldBy(s: State, pack: number, kind: number): number {
  return s.held[pack * s.kindCount + kind]!;
}

/** Duplicates that a swap of items i and j removes; negative when it adds some. */
function fewerDuplicates(s: State, i: number, j: number): number {
  const [p, q] = [s.packing.packOf[i]!, s.packing.packOf[j]!];
  const [a, b] = [s.kinds[i]!, s.kinds[j]!];
  if (p === q || a === b) return 0;
  const removed = Number(heldBy(s, p, a) > 1) + Number(heldBy(s, q, b) > 1);
  const added = Number(heldBy(s, q, a) > 0) + Number(heldBy(s, p, b) > 0);
  return removed - added;
}

/** The larger load of the two packs after a swap of items i and j. */
function swappedLoad(s: State, i: number, j: number): number {
  const moved = s.weights[i]! - s.weights[j]!;
  const [p, q] = [s.packing.packOf[i]!, s.packing.packOf[j]!];
  return Math.max(s.loads[p]! - moved, s.loads[q]! + moved);
}

function swap(s: State, i: number, j: number): void {
  const { packOf, placeOf } = s.packing;
  const [p, q] = [packOf[i]!, packOf[j]!];
  const [a, b] = [s.kinds[i]!, s.kinds[j]!];
  const moved = s.weights[i]! - s.weights[j]!;
  s.loads[p]! -= moved;
  s.loads[q]! += moved;
  s.held[p * s.kindCount + a]!--;
  s.held[q * s.kindCount + a]!++;
  s.held[q * s.kindCount + b]!--;
  s.held[p * s.kindCount + b]!++;
  [packOf[i], packOf[j]] = [q, p];
  [placeOf[i], placeOf[j]] = [placeOf[j]!, placeOf[i]!];
}
