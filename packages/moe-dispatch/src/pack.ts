/**
 * Packing weighted items into packs of equal count: heaviest first, each to the lightest pack with
 * room (EPLB `balanced_packing`). Equal weights go by lowest item, equal packs by lowest pack. With
 * `kinds`, an item prefers packs that hold none of its kind.
 */

/** Items in packs. */
export interface Packing {
  /** Pack of each item. */
  readonly packOf: Int32Array;
  /** Place of each item within its pack, in order of entry. */
  readonly placeOf: Int32Array;
}

/** Packs `weights`, whose number `packs` divides. */
export function packEvenly(weights: Float64Array, packs: number, kinds?: Int32Array): Packing {
  const items = weights.length;
  const packOf = new Int32Array(items);
  const placeOf = new Int32Array(items);
  const room = items / packs;
  if (room === 1) {
    for (let i = 0; i < items; i++) packOf[i] = i;
    return { packOf, placeOf };
  }
  const order = Int32Array.from({ length: items }, (_, i) => i);
  order.sort((a, b) => weights[b]! - weights[a]! || a - b);
  const loads = new Float64Array(packs);
  const sizes = new Int32Array(packs);
  const held = Array.from({ length: packs }, () => new Set<number>());
  for (const item of order) {
    const kind = kinds?.[item];
    let pack = -1;
    let other = -1;
    for (let q = 0; q < packs; q++) {
      if (sizes[q] === room) continue;
      if (pack < 0 || loads[q]! < loads[pack]!) pack = q;
      if (kind === undefined || held[q]!.has(kind)) continue;
      if (other < 0 || loads[q]! < loads[other]!) other = q;
    }
    if (other >= 0) pack = other;
    if (kind !== undefined) held[pack]!.add(kind);
    packOf[item] = pack;
    placeOf[item] = sizes[pack]!++;
    loads[pack]! += weights[item]!;
  }
  return { packOf, placeOf };
}
