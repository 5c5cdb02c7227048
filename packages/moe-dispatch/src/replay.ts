/**
 * Router replay: the choices of one pass, kept small, to be taken again in another, so that a
 * recomputed forward pass, or a trainer after an inference engine, uses the very same experts
 * whatever the rounding of its logits. Give the unpacked ids to `route` as `replay`.
 */
import { TriremeError } from "@trireme/core";
import { unknownExpert } from "./routing.ts";
import { requireInteger, requireLength } from "./shape.ts";

/** Choices of a pass in one or two bytes each; the largest value stands for no expert. */
export interface PackedChoices {
  readonly experts: number;
  readonly topK: number;
  readonly ids: Uint8Array | Uint16Array;
}

/** Packs `expertIds` [T, k]: one byte each up to 255 experts, two up to 65,535. */
export function packChoices(
  expertIds: Int32Array,
  o: { readonly experts: number; readonly topK: number },
): PackedChoices {
  const { experts, topK } = o;
  requireInteger("experts", experts, 1, 0xffff);
  requireInteger("topK", topK, 1);
  if (expertIds.length % topK !== 0) {
    throw new TriremeError(
      "MOE_SHAPE",
      `expertIds hold ${expertIds.length} elements, which is no whole number of tokens of top-${topK}`,
    );
  }
  const ids =
    experts <= 0xff ? new Uint8Array(expertIds.length) : new Uint16Array(expertIds.length);
  for (let slot = 0; slot < expertIds.length; slot++) {
    const e = expertIds[slot]!;
    if (e < -1 || e >= experts) throw unknownExpert(slot, e, experts);
    ids[slot] = e; // −1 becomes the largest value
  }
  return { experts, topK, ids };
}

/** The ids [T, k] that were packed; `tokens`, if given, is checked against them. */
export function unpackChoices(packed: PackedChoices, tokens?: number): Int32Array {
  const { topK, ids } = packed;
  if (tokens !== undefined) {
    requireLength("choices", ids, tokens * topK, `${tokens} tokens x top-${topK}`);
  }
  const none = ids instanceof Uint8Array ? 0xff : 0xffff;
  const expertIds = new Int32Array(ids.length);
  for (let slot = 0; slot < ids.length; slot++)
    expertIds[slot] = ids[slot] === none ? -1 : ids[slot]!;
  return expertIds;
}
