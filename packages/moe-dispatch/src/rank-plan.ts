/**
 * One rank's part of a dispatch, as a real rank makes it: it knows its own choices, sends its counts
 * to the others, and learns from theirs what it will receive. Together the ranks' parts are the
 * plan of `planDispatch`.
 */
import { TriremeError } from "@trireme/core";
import { type DispatchPlan, checkRows, planDispatch, rowLimit } from "./dispatch-plan.ts";
import { requireInteger } from "./shape.ts";

/** What a rank sends. */
export interface SendPlan {
  /** [E] rows for each expert, to be exchanged: part q of them goes to rank q. */
  readonly counts: Int32Array;
  /** [R] rows for each rank: the input splits. */
  readonly splits: Int32Array;
  /** Slot of each row of the send buffer, −1 for padding. */
  readonly slots: Int32Array;
  /** [T, k] row of each slot in the send buffer and, on return, in the combined one; −1 for none. */
  readonly rows: Int32Array;
}

/** Plans one rank's sends; options as those of `planDispatch`. */
export function planSend(o: {
  readonly expertIds: Int32Array;
  readonly topK: number;
  readonly experts: number;
  readonly ranks: number;
  readonly capacity?: number;
}): SendPlan {
  requireInteger("ranks", o.ranks, 1);
  // The rank alone as the first source: the sources after it hold nothing.
  const tokensPerRank = new Float64Array(o.ranks);
  tokensPerRank[0] = o.expertIds.length / o.topK;
  const plan = planDispatch({ ...o, tokensPerRank });
  const rows = plan.sendStarts[1]!;
  return {
    counts: plan.counts.slice(0, o.experts),
    splits: plan.splits.slice(0, o.ranks),
    slots: plan.sendSlots.slice(0, rows),
    rows: plan.sendRows,
  };
}

/** What a rank receives. */
export interface ReceivePlan {
  /** [R] rows from each rank: the output splits. */
  readonly splits: Int32Array;
  /** Rows that arrive, in order of source rank, then expert. */
  readonly received: number;
  /** [L + 1] first row of each of the rank's experts, in expert order, with alignment. */
  readonly expertStarts: Int32Array;
  /** [L, R + 1] first row of each source rank within an expert's rows, and the end: when tiles can start. */
  readonly sourceStarts: Int32Array;
  /** Expert row of each received row; the way back takes received row i from `rows[i]`. */
  readonly rows: Int32Array;
}

/** Plans one rank's receives. */
export function planReceive(o: {
  /** [R, L] rows that each source rank sends for each of this rank's L experts. */
  readonly counts: ArrayLike<number>;
  readonly ranks: number;
  readonly align?: number;
  readonly capacity?: number;
}): ReceivePlan {
  const { counts, ranks, capacity } = o;
  const align = o.align ?? 1;
  requireInteger("ranks", ranks, 1);
  requireInteger("align", align, 1, rowLimit);
  if (capacity !== undefined) requireInteger("capacity", capacity, 0, rowLimit);
  const experts = counts.length / ranks;
  requireInteger(`experts (${counts.length} counts of ${ranks} ranks)`, experts, 1);
  const splits = new Int32Array(ranks);
  let received = 0;
  for (let b = 0; b < counts.length; b++) {
    requireInteger(`count ${b}`, counts[b]!, 0, capacity);
    splits[Math.floor(b / experts)]! += capacity ?? counts[b]!;
    received += capacity ?? counts[b]!;
  }
  checkRows(received);
  const expertStarts = new Int32Array(experts + 1);
  const sourceStarts = new Int32Array(experts * (ranks + 1));
  let end = 0;
  for (let e = 0; e < experts; e++) {
    expertStarts[e] = end;
    for (let r = 0; r < ranks; r++) {
      sourceStarts[e * (ranks + 1) + r] = end;
      end += capacity ?? counts[r * experts + e]!;
    }
    sourceStarts[e * (ranks + 1) + ranks] = end;
    end = Math.ceil(end / align) * align;
    checkRows(end);
  }
  expertStarts[experts] = end;
  const rows = new Int32Array(received);
  let at = 0;
  for (let r = 0; r < ranks; r++) {
    for (let e = 0; e < experts; e++) {
      const start = sourceStarts[e * (ranks + 1) + r]!;
      const size = capacity ?? counts[r * experts + e]!;
      for (let i = 0; i < size; i++) rows[at++] = start + i;
    }
  }
  return { splits, received, expertStarts, sourceStarts, rows };
}

/** The receives of `rank` within a plan of all ranks. */
export function receivesOf(
  plan: DispatchPlan,
  rank: number,
  o: { readonly align?: number; readonly capacity?: number } = {},
): ReceivePlan {
  requireInteger("rank", rank, 0, plan.ranks - 1);
  const local = plan.experts / plan.ranks;
  const counts = new Int32Array(plan.ranks * local);
  for (let r = 0; r < plan.ranks; r++) {
    for (let e = 0; e < local; e++) {
      counts[r * local + e] = plan.counts[r * plan.experts + rank * local + e]!;
    }
  }
  return planReceive({ counts, ranks: plan.ranks, ...o });
}

/** What every rank must hold alike before a dispatch of fixed-size buffers. */
export interface DispatchConfig {
  readonly maxTokens: number;
  readonly tokens: number;
  readonly hidden: number;
  readonly topK: number;
  readonly experts: number;
}

/**
 * Throws unless all ranks agree on the shapes of a dispatch, naming the ranks that differ from rank
 * 0, and unless each rank's tokens fit: where real systems hang (DeepEP issues 165 and 208). The
 * list is what an all-gather of the configurations gives.
 */
export function checkDispatchConfigs(configs: readonly DispatchConfig[]): void {
  for (const key of ["maxTokens", "hidden", "topK", "experts"] as const) {
    const odd = configs.flatMap((c, rank) => (c[key] === configs[0]![key] ? [] : [rank]));
    if (odd.length === 0) continue;
    throw new TriremeError(
      "MOE_CONFIG",
      `${key} is ${configs[0]![key]} on rank 0, but ${configs[odd[0]!]![key]} on rank ${odd[0]} (${odd.length} of ${configs.length} ranks differ: ${odd.slice(0, 8).join(", ")}${odd.length > 8 ? ", ..." : ""}); it must be the same on all`,
    );
  }
  configs.forEach((c, rank) => requireLengthAtMost(rank, c.tokens, c.maxTokens));
}

function requireLengthAtMost(rank: number, tokens: number, maxTokens: number): void {
  if (tokens <= maxTokens) return;
  throw new TriremeError(
    "MOE_CONFIG",
    `rank ${rank} has ${tokens} tokens, but maxTokens is ${maxTokens}; raise it to ${tokens} on all ranks`,
  );
}
