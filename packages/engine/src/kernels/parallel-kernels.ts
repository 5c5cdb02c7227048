/** Kernels of layers that ranks share out; conventions as those of `Kernels`. */
export interface ParallelKernels {
  /**
   * Attention of q[batch * queries, heads * headDim] to k and v[batch * keys, kvHeads * headDim],
   * whose rows lie `queryStride` and `keyStride` elements apart. Query i sees key j where
   * j <= i + shift and, if `window` is not 0, j > i + shift - window. Writes out, laid out as q, and
   * lse[batch, heads, queries]; a query that sees nothing gets 0 and -Infinity. The scores' scale is
   * 1 / sqrt(headDim), `kvHeads` divides `heads`. `workspace` is at least `attentionWorkspace(...)`
   * bytes, of `keys`.
   */
  attendForward(
    q: number,
    k: number,
    v: number,
    out: number,
    lse: number,
    batch: number,
    heads: number,
    kvHeads: number,
    queries: number,
    keys: number,
    headDim: number,
    queryStride: number,
    keyStride: number,
    shift: number,
    window: number,
    workspace: number,
  ): void;
  /**
   * Adds to dq, dk and dv, laid out as q, k and v. Where `out` and `lse` are of attention over more
   * keys than these, it adds the part of these.
   */
  attendBackward(
    q: number,
    k: number,
    v: number,
    out: number,
    lse: number,
    dout: number,
    dq: number,
    dk: number,
    dv: number,
    batch: number,
    heads: number,
    kvHeads: number,
    queries: number,
    keys: number,
    headDim: number,
    queryStride: number,
    keyStride: number,
    shift: number,
    window: number,
    workspace: number,
  ): void;
  /**
   * Merges attention to some keys, part[queries, heads * headDim] and partLse[heads, queries], into
   * `out` and `lse`, that to others.
   */
  attentionMerge(
    part: number,
    partLse: number,
    out: number,
    lse: number,
    heads: number,
    queries: number,
    headDim: number,
  ): void;

  /**
   * The loss over a vocabulary that ranks share out. First each rank writes, of its part of each row,
   * parts[rows, 3]: the maximum, the sum of exp(x - maximum), and the target's logit, 0 where the
   * target, below 0, is in another part.
   */
  vocabLossPart(logits: number, targets: number, parts: number, rows: number, vocab: number): void;
  /** Then, of all parts[ranks, rows, 3]: losses[rows], and totals[rows, 2]: maximum and sum of a row. */
  vocabLossTotal(parts: number, losses: number, totals: number, ranks: number, rows: number): void;
  /** Last, logits[rows, vocab] of the part overwritten by scale * (softmax - onehot). */
  vocabLossGradient(
    logits: number,
    targets: number,
    totals: number,
    rows: number,
    vocab: number,
    scale: number,
  ): void;

  /**
   * Rows of tokens on their way to experts: out[rows, cols] = source[slots[r] / topK], times
   * weights[slots[r]] unless `weights` is 0; zeros for a slot below 0. Slots are int32.
   */
  spreadRows(
    source: number,
    slots: number,
    weights: number,
    out: number,
    rows: number,
    topK: number,
    cols: number,
  ): void;
  /**
   * And back: out[tokens, cols] = the sum over a token's slots of rows[places[slot]], times
   * weights[slot] unless `weights` is 0; nothing for a place (int32) below 0.
   */
  combineRows(
    rows: number,
    places: number,
    weights: number,
    out: number,
    tokens: number,
    topK: number,
    cols: number,
  ): void;
  /** dweights[tokens, topK] = dy[token] . rows[places[slot]]; 0 for a place below 0. */
  combineWeightsGradient(
    dy: number,
    rows: number,
    places: number,
    dweights: number,
    tokens: number,
    topK: number,
    cols: number,
  ): void;
}
