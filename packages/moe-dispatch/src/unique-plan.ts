/**
 * Dispatch of unique tokens (DeepEP): a token goes once to each rank that has any of its experts,
 * not once per expert, and once to each other host, where one rank passes it on. A received row
 * still has to be expanded to (token, expert) rows. Combine adds the ranks' rows up, without
 * weights: those are applied on the expert's side. Legend: T tokens, k slots, R ranks, E experts.
 */
import { type DispatchPlan, planDispatch, startsOf } from "./dispatch-plan.ts";
import { type Floats, type Routing, floatsLike, unknownExpert } from "./routing.ts";
import { requireDivisible, requireInteger, requireLength } from "./shape.ts";

/** Choices whose tokens are to be counted once per rank. */
export interface UniqueOptions {
  /** [T, k] expert of each slot, −1 for none. */
  readonly expertIds: Int32Array;
  readonly topK: number;
  readonly experts: number;
  readonly ranks: number;
  /** Ranks of one host, in order; default all. */
  readonly ranksPerHost?: number;
}

/** Where tokens go (DeepEP `get_dispatch_layout`). */
export interface TokenLayout {
  /** [R] tokens with an expert on each rank. */
  readonly perRank: Int32Array;
  /** [hosts] tokens with an expert on each host. */
  readonly perHost: Int32Array;
  /** [E] slots of each expert. */
  readonly perExpert: Int32Array;
  /** [T, R] 1 where a token has an expert on the rank. */
  readonly inRank: Uint8Array;
}

/** Counts tokens once per rank and once per host. */
export function tokenLayout(o: UniqueOptions): TokenLayout {
  const { tokens, local, ranksPerHost, hosts } = checkUnique(o);
  const { expertIds, topK, ranks } = o;
  const perRank = new Int32Array(ranks);
  const perHost = new Int32Array(hosts);
  const perExpert = new Int32Array(o.experts);
  const inRank = new Uint8Array(tokens * ranks);
  const hostSeen = new Int32Array(hosts).fill(-1);
  for (let t = 0; t < tokens; t++) {
    for (let slot = t * topK; slot < (t + 1) * topK; slot++) {
      const e = expertIds[slot]!;
      if (e === -1) continue;
      if (e < 0 || e >= o.experts) throw unknownExpert(slot, e, o.experts);
      perExpert[e]!++;
      const rank = Math.floor(e / local);
      if (inRank[t * ranks + rank] === 1) continue;
      inRank[t * ranks + rank] = 1;
      perRank[rank]!++;
      const host = Math.floor(rank / ranksPerHost);
      if (hostSeen[host] === t) continue;
      hostSeen[host] = t;
      perHost[host]!++;
    }
  }
  return { perRank, perHost, perExpert, inRank };
}

/** A dispatch of unique tokens; received rows are in order of rank, source rank, token. */
export interface UniquePlan {
  readonly tokens: number;
  readonly topK: number;
  readonly experts: number;
  readonly ranks: number;
  readonly ranksPerHost: number;
  /** [R + 1] first token of each source rank. */
  readonly tokenStarts: Int32Array;
  /** [R, R] rows from rank to rank, direct. */
  readonly splits: Int32Array;
  /** [R, R] rows of the first step by hosts: once per token and host, to the rank with the sender's place in its host. */
  readonly hostSplits: Int32Array;
  /** [R, R] rows of the second step: from that rank to the ranks of its host. */
  readonly forwardSplits: Int32Array;
  /** [R + 1] first received row of each rank. */
  readonly receiveStarts: Int32Array;
  /** Token of each received row. */
  readonly receiveTokens: Int32Array;
}

/** Plans a dispatch of unique tokens; `tokensPerRank` as in `planDispatch`. */
export function planUnique(
  o: UniqueOptions & { readonly tokensPerRank?: ArrayLike<number> },
): UniquePlan {
  const { tokens, ranksPerHost, hosts } = checkUnique(o);
  const { ranks } = o;
  const tokenStarts = startsOf(tokens, ranks, o.tokensPerRank);
  const { inRank, perRank } = tokenLayout(o);
  const splits = new Int32Array(ranks * ranks);
  const hostSplits = new Int32Array(ranks * ranks);
  const forwardSplits = new Int32Array(ranks * ranks);
  const receiveStarts = new Int32Array(ranks + 1);
  for (let r = 0; r < ranks; r++) receiveStarts[r + 1] = receiveStarts[r]! + perRank[r]!;
  const receiveTokens = new Int32Array(receiveStarts[ranks]!);
  const cursors = receiveStarts.slice(0, ranks);
  for (let source = 0; source < ranks; source++) {
    for (let t = tokenStarts[source]!; t < tokenStarts[source + 1]!; t++) {
      for (let host = 0; host < hosts; host++) {
        const relay = host * ranksPerHost + (source % ranksPerHost);
        let any = false;
        for (let to = host * ranksPerHost; to < (host + 1) * ranksPerHost; to++) {
          if (inRank[t * ranks + to] === 0) continue;
          any = true;
          splits[source * ranks + to]!++;
          forwardSplits[relay * ranks + to]!++;
          receiveTokens[cursors[to]!++] = t;
        }
        if (any) hostSplits[source * ranks + relay]!++;
      }
    }
  }
  return {
    tokens,
    topK: o.topK,
    experts: o.experts,
    ranks,
    ranksPerHost,
    tokenStarts,
    splits,
    hostSplits,
    forwardSplits,
    receiveStarts,
    receiveTokens,
  };
}

/**
 * The routing of the rows that `rank` receives: its experts numbered from 0, −1 and weight 0 for
 * slots elsewhere. `rows`, if given, fixes the number of rows (so that no count has to reach the
 * host first); those beyond the received have no expert.
 */
export function receivedRouting(
  plan: UniquePlan,
  rank: number,
  routing: Routing,
  rows?: number,
): Routing {
  requireInteger("rank", rank, 0, plan.ranks - 1);
  const { topK } = plan;
  requireLength("expertIds", routing.expertIds, plan.tokens * topK, `${plan.tokens} x top-${topK}`);
  const start = plan.receiveStarts[rank]!;
  const received = plan.receiveStarts[rank + 1]! - start;
  const tokens = rows ?? received;
  requireInteger("rows", tokens, received);
  const local = plan.experts / plan.ranks;
  const expertIds = new Int32Array(tokens * topK).fill(-1);
  const weights = floatsLike(routing.weights, tokens * topK);
  for (let i = 0; i < received; i++) {
    const from = plan.receiveTokens[start + i]! * topK;
    for (let j = 0; j < topK; j++) {
      const e = routing.expertIds[from + j]!;
      if (e < rank * local || e >= (rank + 1) * local) continue;
      expertIds[i * topK + j] = e - rank * local;
      weights[i * topK + j] = routing.weights[from + j]!;
    }
  }
  return { tokens, experts: local, topK, expertIds, weights };
}

/** Expands received rows to (token, expert) rows sorted by expert: the plan of one rank by itself. */
export function planExpand(received: Routing, o: { readonly align?: number } = {}): DispatchPlan {
  return planDispatch({ ...o, ...received, ranks: 1 });
}

/** All ranks' received rows of tokens `x` [T, hidden]; the gradient of `combineUnique`. */
export function dispatchUnique(plan: UniquePlan, x: Floats, hidden: number): Floats {
  requireLength("x", x, plan.tokens * hidden, `${plan.tokens} tokens x ${hidden}`);
  const out = floatsLike(x, plan.receiveTokens.length * hidden);
  for (let i = 0; i < plan.receiveTokens.length; i++) {
    const from = plan.receiveTokens[i]! * hidden;
    for (let c = 0; c < hidden; c++) out[i * hidden + c] = x[from + c]!;
  }
  return out;
}

/** Tokens [T, hidden] as the sums of their rows on all ranks; the gradient of `dispatchUnique`. */
export function combineUnique(plan: UniquePlan, y: Floats, hidden: number): Floats {
  const rows = plan.receiveTokens.length;
  requireLength("y", y, rows * hidden, `${rows} received rows x ${hidden}`);
  const out = floatsLike(y, plan.tokens * hidden);
  for (let i = 0; i < rows; i++) {
    const to = plan.receiveTokens[i]! * hidden;
    for (let c = 0; c < hidden; c++) out[to + c]! += y[i * hidden + c]!;
  }
  return out;
}

function checkUnique(o: UniqueOptions): {
  tokens: number;
  local: number;
  ranksPerHost: number;
  hosts: number;
} {
  requireInteger("topK", o.topK, 1);
  requireInteger("experts", o.experts, 1);
  requireInteger("ranks", o.ranks, 1);
  requireDivisible("experts", o.experts, "ranks", o.ranks);
  const ranksPerHost = o.ranksPerHost ?? o.ranks;
  requireInteger("ranksPerHost", ranksPerHost, 1);
  requireDivisible("ranks", o.ranks, "ranks per host", ranksPerHost);
  const tokens = o.expertIds.length / o.topK;
  requireInteger(`tokens (${o.expertIds.length} slots of top-${o.topK})`, tokens, 0);
  return { tokens, local: o.experts / o.ranks, ranksPerHost, hosts: o.ranks / ranksPerHost };
}
