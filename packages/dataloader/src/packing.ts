/**
 * Documents of many lengths into rows of one length. A packing is columns: row r holds the segments
 * ends[r - 1] up to ends[r], each a run of tokens of one document.
 */
import { TriremeError } from "@trireme/core";
import { type BinAssignment, fillBestFit, fillFirstFit } from "./bin-packing.ts";

/** Rows of up to `capacity` tokens, each a list of segments. */
export interface Packing {
  /** Tokens a row holds. */
  readonly capacity: number;
  /** Where each row's segments end in the columns below, exclusive. [rows] */
  readonly ends: Uint32Array;
  /** The document of each segment. */
  readonly document: Uint32Array;
  /** Where the segment starts in its document, in tokens. */
  readonly start: Float64Array;
  /** Tokens of the segment, at least 1. */
  readonly length: Uint32Array;
}

/**
 * How rows are filled. "concatenate": documents end to end, cut at every row's end, nothing lost and no
 * padding. "first-fit" and "best-fit": longest document first, into the first row that has room or into
 * the fullest; documents stay whole, rows may have padding at their end. (Decreasing first and best fit:
 * Johnson, Near-optimal bin packing algorithms, 1973; Ding et al., Fewer truncations improve language
 * modeling, ICML 2024.)
 */
export type PackingMethod = "concatenate" | "first-fit" | "best-fit";

/** What becomes of a document longer than a row, where documents stay whole. */
export type LongDocuments =
  /** An error that names it. */
  | "refuse"
  /** Pieces of a row each and a rest. */
  | "split"
  /** Its first row's worth; the rest is lost. */
  | "truncate";

/** What is to be packed. */
export interface PackingOptions {
  /** Tokens of each document; empty ones are left out. */
  readonly lengths: ArrayLike<number>;
  /** Tokens of a row. */
  readonly capacity: number;
  readonly method: PackingMethod;
  /** Default "split". */
  readonly long?: LongDocuments;
}

/** Packs documents. Deterministic; O(n log n) in the number of documents. */
export function pack(options: PackingOptions): Packing {
  const { lengths, capacity, method, long = "split" } = options;
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > 0x7fffffff) {
    throw new TriremeError("PACKING", `a row of ${capacity} tokens; use an integer in 1..2^31-1`);
  }
  for (let d = 0; d < lengths.length; d++) {
    const length = lengths[d]!;
    if (!Number.isSafeInteger(length) || length < 0) {
      throw new TriremeError("PACKING", `document ${d} has length ${length}, which is no count`);
    }
    if (length > capacity && long === "refuse" && method !== "concatenate") {
      throw new TriremeError(
        "PACKING",
        `document ${d} has ${length} tokens, a row ${capacity}; use long rows, or "split" or "truncate"`,
      );
    }
  }
  if (method === "concatenate") return concatenate(lengths, capacity);
  const pieces = cutLong(lengths, capacity, long === "truncate");
  const fill = method === "first-fit" ? fillFirstFit : fillBestFit;
  return gather(pieces, fill(pieces.length, capacity), capacity);
}

/** Rows of a packing. */
export function packedRows(packing: Packing): number {
  return packing.ends.length;
}

/** Tokens that are not padding, as a fraction of all rows; 1 where there is no row. */
export function packingFill({ ends, length, capacity }: Packing): number {
  const tokens = length.reduce((sum, tokensOf) => sum + tokensOf, 0);
  return ends.length === 0 ? 1 : tokens / (ends.length * capacity);
}

interface Pieces {
  readonly document: Uint32Array;
  readonly start: Float64Array;
  readonly length: Uint32Array;
}

function concatenate(lengths: ArrayLike<number>, capacity: number): Packing {
  const segments: { document: number; start: number; length: number }[] = [];
  const ends: number[] = [];
  let room = capacity;
  for (let document = 0; document < lengths.length; document++) {
    for (let start = 0; start < lengths[document]!;) {
      const length = Math.min(room, lengths[document]! - start);
      segments.push({ document, start, length });
      start += length;
      room -= length;
      if (room === 0) {
        ends.push(segments.length);
        room = capacity;
      }
    }
  }
  if (room < capacity) ends.push(segments.length);
  return {
    capacity,
    ends: Uint32Array.from(ends),
    document: Uint32Array.from(segments, (segment) => segment.document),
    start: Float64Array.from(segments, (segment) => segment.start),
    length: Uint32Array.from(segments, (segment) => segment.length),
  };
}

function cutLong(lengths: ArrayLike<number>, capacity: number, truncate: boolean): Pieces {
  let count = 0;
  const piecesOf = (length: number): number =>
    truncate ? Math.min(1, length) : Math.ceil(length / capacity);
  for (let d = 0; d < lengths.length; d++) count += piecesOf(lengths[d]!);
  const pieces = {
    document: new Uint32Array(count),
    start: new Float64Array(count),
    length: new Uint32Array(count),
  };
  let at = 0;
  for (let d = 0; d < lengths.length; d++) {
    for (let k = 0; k < piecesOf(lengths[d]!); k++, at++) {
      pieces.document[at] = d;
      pieces.start[at] = k * capacity;
      pieces.length[at] = Math.min(capacity, lengths[d]! - k * capacity);
    }
  }
  return pieces;
}

/** The packing that puts piece i into row rowOf[i], the longest first within a row. */
function gather(pieces: Pieces, assignment: BinAssignment, capacity: number): Packing {
  const { rowOf, rows, order } = assignment;
  const ends = new Uint32Array(rows);
  for (const row of rowOf) ends[row]!++;
  for (let row = 1; row < rows; row++) ends[row]! += ends[row - 1]!;
  const next = Uint32Array.from(ends, (_, row) => (row === 0 ? 0 : ends[row - 1]!));
  const count = rowOf.length;
  const [document, start, length] = [
    new Uint32Array(count),
    new Float64Array(count),
    new Uint32Array(count),
  ];
  for (const piece of order) {
    const at = next[rowOf[piece]!]!++;
    document[at] = pieces.document[piece]!;
    start[at] = pieces.start[piece]!;
    length[at] = pieces.length[piece]!;
  }
  return { capacity, ends, document, start, length };
}
