/**
 * The shuffles of MosaicML Streaming (streaming/base/shuffle), as its documentation defines them, on our
 * own random numbers: an order of samples in which each canonical node keeps its shards in every epoch,
 * so that they stay in its cache, and mixes them by another draw each time.
 */
import { type Rng, TriremeError, createRng, hash32 } from "@trireme/core";

/** How samples are mixed. "none" and "naive" know nothing of shards. */
export type ShardShuffle = "none" | "naive" | "py1s" | "py1br" | "py1e" | "py2s";

/** What is to be shuffled. */
export interface ShardShuffleOptions {
  /** Samples of each shard, in the order of their numbers. */
  readonly shardSizes: ArrayLike<number>;
  readonly canonicalNodes: number;
  readonly method: ShardShuffle;
  readonly seed: number;
  readonly epoch: number;
  /** Samples around a shard's place among which "py1br" and "py1e" mix; default 2¹⁸. */
  readonly block?: number;
}

/** Consecutive samples of a shard, or of the part of it on one canonical node. */
interface Span {
  readonly start: number;
  readonly length: number;
}

/**
 * For each place of the epoch's order its sample: a permutation. O(samples), for "py1e" · log.
 * @throws TriremeError "SHUFFLE"
 */
export function shuffleShards(options: ShardShuffleOptions): Float64Array {
  const { canonicalNodes, method, seed, epoch, block = 2 ** 18 } = options;
  for (const [name, value] of Object.entries({ canonicalNodes, block })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TriremeError("SHUFFLE", `${name} ${value} is not a positive integer`);
  }
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new TriremeError("SHUFFLE", `epoch ${epoch} is not a count`);
  const run = createRng(seed);
  const rng = createRng(hash32(run.next(), epoch));
  const shards = spansOf(options.shardSizes);
  const samples = shards.reduce((sum, { length }) => sum + length, 0);
  if (method === "none" || method === "naive") {
    const order = Float64Array.from({ length: samples }, (_, i) => i);
    if (method === "naive") shuffle(order, rng);
    return order;
  }
  const scattered = Float64Array.from({ length: samples }, (_, i) => i);
  if (method === "py2s") for (const span of shards) shuffle(within(scattered, span), run);
  // Which node has which shard is drawn once for the run.
  shuffle(shards, run);
  const order = new Float64Array(samples);
  let start = 0;
  for (const spans of spansByNode(shards, samples, canonicalNodes)) {
    shuffle(spans, rng);
    const end = start + spans.reduce((sum, { length }) => sum + length, 0);
    const own = order.subarray(start, end);
    let filled = 0;
    for (const span of spans) {
      own.set(within(scattered, span), filled);
      filled += span.length;
    }
    mix(own, spans, method, block, rng);
    start = end;
  }
  return order;
}

function spansOf(sizes: ArrayLike<number>): Span[] {
  let start = 0;
  return Array.from(sizes, (length, shard) => {
    if (!Number.isSafeInteger(length) || length < 0)
      throw new TriremeError("SHUFFLE", `shard ${shard} has ${length} samples`);
    start += length;
    return { start: start - length, length };
  });
}

/** The spans of each canonical node; a shard that crosses the border of two is cut there. */
function spansByNode(shards: readonly Span[], samples: number, nodes: number): Span[][] {
  const parts = Array.from({ length: nodes }, (): Span[] => []);
  let position = 0;
  let node = 0;
  for (let { start, length } of shards) {
    while (length > 0) {
      const border = Math.floor((samples * (node + 1)) / nodes);
      const here = Math.min(length, border - position);
      if (here > 0) parts[node]!.push({ start, length: here });
      position += here;
      start += here;
      length -= here;
      if (position === border) node++;
    }
  }
  return parts;
}

function within(samples: Float64Array, { start, length }: Span): Float64Array {
  return samples.subarray(start, start + length);
}

/** Mixes the samples of one canonical node, which lie span by span. */
function mix(
  order: Float64Array,
  spans: readonly Span[],
  method: Exclude<ShardShuffle, "none" | "naive">,
  block: number,
  rng: Rng,
): void {
  if (method === "py1br") {
    for (const [from, to] of staggeredBlocks(order.length, block, rng))
      shuffle(order.subarray(from, to), rng);
    return;
  }
  let start = 0;
  const places = spans.map(({ length }): Span => {
    start += length;
    return { start: start - length, length };
  });
  for (const place of places) shuffle(within(order, place), rng);
  if (method === "py1e") spread(order, places, block, rng);
}

/** Blocks of 0.75 to 1.25 of the size, the first of them begun before the node's first sample. */
function staggeredBlocks(samples: number, block: number, rng: Rng): (readonly [number, number])[] {
  const size = (): number => Math.max(1, between(rng, 0.75 * block, 1.25 * block));
  const blocks: (readonly [number, number])[] = [];
  let from = 0;
  let to = size() - between(rng, 0, 0.75 * block);
  for (; from < samples; to += size()) {
    const end = Math.min(samples, to);
    if (end > from) blocks.push([from, end]);
    from = Math.max(from, end);
  }
  return blocks;
}

/** Moves each sample by so much that those of its span stay within a block of random size around it. */
function spread(order: Float64Array, spans: readonly Span[], block: number, rng: Rng): void {
  const moved = new Float64Array(order.length);
  for (const { start, length } of spans) {
    const size = between(rng, 0.75 * block, 1.25 * block);
    const reach = Math.max(0, (size - length) / 2);
    const low = -Math.min(reach, start);
    const high = Math.min(reach, order.length - start - length);
    for (let i = start; i < start + length; i++) moved[i] = i + low + (high - low) * rng.float();
  }
  const sorted = Float64Array.from(order.keys()).sort((a, b) => moved[a]! - moved[b]!);
  order.set(sorted.map((i) => order[i]!));
}

/** An integer of at least ⌊low⌋ and below ⌊high⌋, or the lower where there is none. */
function between(rng: Rng, low: number, high: number): number {
  const [from, to] = [Math.floor(low), Math.floor(high)];
  return to > from ? from + rng.integer(to - from) : from;
}

/** Fisher and Yates. */
function shuffle(items: Float64Array | Span[], rng: Rng): void {
  const list: { [index: number]: number | Span; readonly length: number } = items;
  for (let i = list.length - 1; i > 0; i--) {
    const j = rng.integer(i + 1);
    const held = list[i]!;
    list[i] = list[j]!;
    list[j] = held;
  }
}
