/**
 * The exchange around attention when the layer's other parts are cut along the sequence (Ulysses,
 * arXiv:2309.14509; MegaScale-MoE §4.1): an all-to-all turns [s/n, heads] into [s, heads/n] for
 * queries, keys and values, another turns the result back. It stands here because its volume is
 * what expert parallelism is weighed against: tensor parallelism moves 2·bsh·(n − 1)/n a layer.
 */
import { requireDivisible, requireInteger } from "./shape.ts";
import { startsOf } from "./dispatch-plan.ts";

/** An attention layer whose tokens are cut over ranks. */
export interface HeadExchangeOptions {
  /** Tokens of all ranks together (batch times sequence). */
  readonly tokens: number;
  readonly heads: number;
  /** Key and value heads; a divisor of `heads`. */
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ranks: number;
}

/** Numbers that go from rank to rank, [R, R], in each of the two exchanges. */
export interface HeadExchange {
  /** Queries, keys and values, before attention. */
  readonly before: Float64Array;
  /** The result, after attention. */
  readonly after: Float64Array;
}

/**
 * Plans both exchanges. Tokens and heads need not divide by the ranks; a key or value head is sent
 * to every rank with one of its query heads.
 */
export function planHeadExchange(o: HeadExchangeOptions): HeadExchange {
  requireInteger("tokens", o.tokens, 0);
  requireInteger("heads", o.heads, 1);
  requireInteger("kvHeads", o.kvHeads, 1);
  requireInteger("headDim", o.headDim, 1);
  requireInteger("ranks", o.ranks, 1);
  requireDivisible("heads", o.heads, "key/value heads", o.kvHeads);
  const tokens = startsOf(o.tokens, o.ranks);
  const heads = startsOf(o.heads, o.ranks);
  const perKv = o.heads / o.kvHeads;
  const before = new Float64Array(o.ranks * o.ranks);
  const after = new Float64Array(o.ranks * o.ranks);
  for (let from = 0; from < o.ranks; from++) {
    const held = tokens[from + 1]! - tokens[from]!;
    for (let to = 0; to < o.ranks; to++) {
      const [first, end] = [heads[to]!, heads[to + 1]!];
      const kv = end === first ? 0 : Math.ceil(end / perKv) - Math.floor(first / perKv);
      before[from * o.ranks + to] = held * o.headDim * (end - first + 2 * kv);
      after[to * o.ranks + from] = held * o.headDim * (end - first);
    }
  }
  return { before, after };
}
