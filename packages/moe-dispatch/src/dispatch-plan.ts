/**
 * The dispatch plan: where every (token, expert) row goes and how it comes back. Legend: T tokens,
 * k slots per token, R ranks, E experts (those of a placement's replicas, where there are any),
 * experts in order over the ranks, E/R each.
 *
 * Three orders of the same rows. *Slot* order: token, choice. *Send* order: source rank, expert,
 * token; a source rank's part of it is its send buffer. *Expert* order: expert, source rank, token
 * (MegaScale-MoE §4.3), so that a grouped GEMM can start when the first ranks' rows are in; an
 * expert rank's part is its input. Between arrival (source rank, expert) and expert order only
 * whole blocks move. Two counting sorts, linear in T·k; receive order is fixed, and no atomics.
 */
import { TriremeError } from "@trireme/core";
import { unknownExpert } from "./routing.ts";
import { requireDivisible, requireInteger, requireLength } from "./shape.ts";

/** Choices to be planned for. */
export interface DispatchOptions {
  /** [T, k] expert of each slot, −1 for none; the tokens of rank 0 first. */
  readonly expertIds: Int32Array;
  readonly topK: number;
  readonly experts: number;
  readonly ranks: number;
  /** [R] tokens each rank holds, zero allowed; default as equal as they divide. */
  readonly tokensPerRank?: ArrayLike<number>;
  /** Dropless: pads the rows of each expert to a multiple (128 for grouped GEMM, 16 for FP8); default 1. */
  readonly align?: number;
  /** Pads every (source rank, expert) block to exactly this many rows, so that all splits are equal. */
  readonly capacity?: number;
  /** Id of token 0 in the whole batch, up to 2⁵³; default 0. */
  readonly firstToken?: number;
}

/** Where rows go. A row index is below 2³¹; token ids (`tokenId`) are not limited to that. */
export interface DispatchPlan {
  readonly tokens: number;
  readonly topK: number;
  readonly experts: number;
  readonly ranks: number;
  readonly firstToken: number;
  /** [R + 1] first token of each rank, within this plan. */
  readonly tokenStarts: Int32Array;
  /** Slots that have an expert. */
  readonly filled: number;
  /** [R, E] slots of each source rank for each expert, without padding. */
  readonly counts: Int32Array;
  /** [R, R] rows from rank to rank, with the padding of `capacity`. */
  readonly splits: Int32Array;
  /** [R + 1] first send row of each source rank. */
  readonly sendStarts: Int32Array;
  /** [E + 1] first expert row of each expert, with its padding. */
  readonly expertStarts: Int32Array;
  /** [R, E] expert row at which each block begins. */
  readonly blockStarts: Int32Array;
  /** Slot of each send row, −1 for padding. */
  readonly sendSlots: Int32Array;
  /** [T, k] send row of each slot, −1 for none: the inverse of `sendSlots`. */
  readonly sendRows: Int32Array;
  /** Slot of each expert row, −1 for padding. */
  readonly expertSlots: Int32Array;
  /** [T, k] expert row of each slot, −1 for none: the inverse of `expertSlots`. */
  readonly expertRows: Int32Array;
}

/** Rows that a plan's 32-bit columns can name. */
export const rowLimit: number = 2 ** 31 - 1;

/** Plans the dispatch of all ranks' tokens. */
export function planDispatch(o: DispatchOptions): DispatchPlan {
  const { expertIds, topK, experts, ranks, capacity } = o;
  const align = o.align ?? 1;
  const firstToken = o.firstToken ?? 0;
  requireInteger("topK", topK, 1);
  requireInteger("experts", experts, 1);
  requireInteger("ranks", ranks, 1);
  requireDivisible("experts", experts, "ranks", ranks);
  requireInteger("align", align, 1, rowLimit);
  requireInteger("firstToken", firstToken, 0);
  if (capacity !== undefined) requireInteger("capacity", capacity, 0, rowLimit);
  const tokens = expertIds.length / topK;
  requireInteger(`tokens (${expertIds.length} slots of top-${topK})`, tokens, 0, rowLimit);
  const tokenStarts = startsOf(tokens, ranks, o.tokensPerRank);

  const counts = new Int32Array(ranks * experts);
  const filled = countBlocks(expertIds, topK, experts, tokenStarts, counts);
  if (capacity !== undefined) checkCapacity(counts, experts, capacity);

  const sendOffsets = new Int32Array(ranks * experts);
  const sendStarts = new Int32Array(ranks + 1);
  const splits = new Int32Array(ranks * ranks);
  const local = experts / ranks;
  let rows = 0;
  for (let r = 0; r < ranks; r++) {
    for (let e = 0; e < experts; e++) {
      const b = r * experts + e;
      const size = capacity ?? counts[b]!;
      sendOffsets[b] = rows;
      rows += size;
      splits[r * ranks + Math.floor(e / local)]! += size;
    }
    checkRows(rows);
    sendStarts[r + 1] = rows;
  }
  const expertStarts = new Int32Array(experts + 1);
  const blockStarts = new Int32Array(ranks * experts);
  let end = 0;
  for (let e = 0; e < experts; e++) {
    expertStarts[e] = end;
    for (let r = 0; r < ranks; r++) {
      blockStarts[r * experts + e] = end;
      end += capacity ?? counts[r * experts + e]!;
    }
    end = Math.ceil(end / align) * align;
    checkRows(end);
  }
  expertStarts[experts] = end;

  const sendRows = new Int32Array(expertIds.length);
  const expertRows = new Int32Array(expertIds.length);
  const sendSlots = new Int32Array(rows);
  const expertSlots = new Int32Array(end);
  if (rows !== filled) sendSlots.fill(-1);
  if (end !== filled) expertSlots.fill(-1);
  for (let r = 0; r < ranks; r++) {
    const row = r * experts;
    // From here `sendOffsets` are cursors; a row's place in its block is the same in both orders.
    const shift = blockStarts.slice(row, row + experts);
    for (let e = 0; e < experts; e++) shift[e]! -= sendOffsets[row + e]!;
    const cursors = sendOffsets.subarray(row, row + experts);
    const last = tokenStarts[r + 1]! * topK;
    for (let slot = tokenStarts[r]! * topK; slot < last; slot++) {
      const e = expertIds[slot]!;
      if (e < 0) {
        sendRows[slot] = -1;
        expertRows[slot] = -1;
        continue;
      }
      const s = cursors[e]!++;
      const x = s + shift[e]!;
      sendRows[slot] = s;
      sendSlots[s] = slot;
      expertRows[slot] = x;
      expertSlots[x] = slot;
    }
  }
  return {
    tokens,
    topK,
    experts,
    ranks,
    firstToken,
    tokenStarts,
    filled,
    counts,
    splits,
    sendStarts,
    expertStarts,
    blockStarts,
    sendSlots,
    sendRows,
    expertSlots,
    expertRows,
  };
}

/** Id in the whole batch of the token of `slot`: a 64-bit float, which does not wrap at 2³¹. */
export function tokenId(plan: DispatchPlan, slot: number): number {
  return plan.firstToken + Math.floor(slot / plan.topK);
}

/** First token of each rank, [R + 1]. */
export function startsOf(
  tokens: number,
  ranks: number,
  tokensPerRank?: ArrayLike<number>,
): Int32Array {
  const starts = new Int32Array(ranks + 1);
  if (tokensPerRank === undefined) {
    for (let r = 0; r <= ranks; r++) starts[r] = Math.floor((tokens * r) / ranks);
    return starts;
  }
  requireLength("tokensPerRank", tokensPerRank, ranks, `${ranks} ranks`);
  let end = 0;
  for (let r = 0; r < ranks; r++) {
    requireInteger(`tokens of rank ${r}`, tokensPerRank[r]!, 0, rowLimit);
    end += tokensPerRank[r]!;
    starts[r + 1] = end;
  }
  if (end !== tokens) {
    throw new TriremeError(
      "MOE_SHAPE",
      `tokensPerRank add up to ${end}, but expertIds hold ${tokens} tokens`,
    );
  }
  return starts;
}

function countBlocks(
  ids: Int32Array,
  topK: number,
  experts: number,
  tokenStarts: Int32Array,
  counts: Int32Array,
): number {
  let filled = 0;
  for (let r = 0; r + 1 < tokenStarts.length; r++) {
    const row = counts.subarray(r * experts, (r + 1) * experts);
    const last = tokenStarts[r + 1]! * topK;
    for (let slot = tokenStarts[r]! * topK; slot < last; slot++) {
      const e = ids[slot]!;
      if (e === -1) continue;
      if (e < 0 || e >= experts) throw unknownExpert(slot, e, experts);
      row[e]!++;
      filled++;
    }
  }
  return filled;
}

function checkCapacity(counts: Int32Array, experts: number, capacity: number): void {
  for (let b = 0; b < counts.length; b++) {
    if (counts[b]! <= capacity) continue;
    throw new TriremeError(
      "MOE_CAPACITY",
      `rank ${Math.floor(b / experts)} has ${counts[b]} slots for expert ${b % experts}, but the capacity is ${capacity}; drop tokens first, or raise it to ${counts.reduce((most, n) => Math.max(most, n), 0)}`,
    );
  }
}

/** Throws where a plan needs more rows than its columns can name. */
export function checkRows(rows: number): void {
  if (rows <= rowLimit) return;
  throw new TriremeError(
    "MOE_ROWS",
    `the plan needs at least ${rows} rows, but one plan holds 2^31 - 1; plan fewer ranks' tokens at a time, with firstToken, or use splitsFromCounts`,
  );
}
