/** A row of a packing as what a model is fed: tokens, labels, positions, mask, and where segments begin. */
import { TriremeError } from "@trireme/core";
import type { Packing } from "./packing.ts";

/** One row; every array but `boundaries` has `capacity` entries. */
export interface PackedRow {
  readonly tokens: Int32Array;
  /** The token to predict at each place; the padding token where there is none. */
  readonly labels: Int32Array;
  /** Place in the document, from 0 in each segment. */
  readonly positions: Int32Array;
  /** 1 where the label counts in the loss, 0 at the end of a document and in the padding. */
  readonly lossMask: Uint8Array;
  /** Where each segment begins, and the end of the last: cu_seqlens of attention kernels. */
  readonly boundaries: Int32Array;
}

/** Fills `into` with the tokens of a document from `start` on. */
export type ReadDocument = (document: number, start: number, into: Int32Array) => void;

/**
 * Builds a row. `lengths` are the documents' own: where a segment stops before its document does, the
 * next token of the document is its last label, so that splitting loses no label. Padding, at the end
 * of the row, is a segment of no boundary with `padding` as token and label.
 */
export function packedRow(
  packing: Packing,
  row: number,
  lengths: ArrayLike<number>,
  read: ReadDocument,
  padding = 0,
): PackedRow {
  const { capacity, ends, document, start, length } = packing;
  if (!Number.isInteger(row) || row < 0 || row >= ends.length) {
    throw new TriremeError("RANGE", `row ${row} is outside 0..${ends.length - 1}`);
  }
  const tokens = new Int32Array(capacity).fill(padding);
  const labels = new Int32Array(capacity).fill(padding);
  const positions = new Int32Array(capacity);
  const lossMask = new Uint8Array(capacity);
  const first = row === 0 ? 0 : ends[row - 1]!;
  const boundaries = new Int32Array(ends[row]! - first + 1);
  let at = 0;
  for (let segment = first; segment < ends[row]!; segment++) {
    const count = length[segment]!;
    const more = start[segment]! + count < lengths[document[segment]!]! ? 1 : 0;
    const run = new Int32Array(count + more);
    read(document[segment]!, start[segment]!, run);
    tokens.set(run.subarray(0, count), at);
    labels.set(run.subarray(1), at);
    lossMask.fill(1, at, at + count - 1 + more);
    for (let i = 0; i < count; i++) positions[at + i] = i;
    at += count;
    boundaries[segment - first + 1] = at;
  }
  return { tokens, labels, positions, lossMask, boundaries };
}
