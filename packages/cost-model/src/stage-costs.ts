/**
 * One microbatch through one stage, from the prices of its blocks. Kernels of a rank run one after another, and no pass
 * is shorter than its launches. A tensor-parallel collective that the next kernel waits for is exposed; in backward,
 * Megatron-LM sends the input gradient of a column-parallel product while it computes the weight gradient, and gathers
 * the saved input while it computes the input gradient (arXiv 2205.05198 §4.2.2), so only what outlasts the product is.
 */
import type { Bytes, Seconds } from "@trireme/core";
import type { CollectiveOperator, Model, Pass, Plan, Stage } from "@trireme/workload";
import {
  type BlockPrices,
  type CollectivePrice,
  type MicrobatchPass,
  type PassPrices,
  microbatchPasses,
  repeatsOf,
} from "./block-prices.ts";
import type { Communication } from "./groups.ts";
import { overlapped } from "./overlap.ts";

/** One microbatch through one stage of one rank, without what depends on the number of replicas. */
export interface StageCosts {
  /** Kernels of each pass, without communication. */
  readonly compute: Readonly<Record<MicrobatchPass, Seconds>>;
  /** Exposed tensor- and context-parallel communication of each pass. */
  readonly exposed: Readonly<Record<MicrobatchPass, Seconds>>;
}

/** Adds a stage up. Blocks that the stage does not have count zero times. */
export function stageCosts(prices: BlockPrices, m: Model, p: Plan, s: Stage): StageCosts {
  const repeats = repeatsOf(m, p, s);
  const compute = { forward: 0, recompute: 0, "input-gradient": 0, "weight-gradient": 0 };
  const exposed = { forward: 0, recompute: 0, "input-gradient": 0, "weight-gradient": 0 };
  for (const pass of microbatchPasses) compute[pass] = passTime(prices.passes[pass], repeats);
  for (const c of prices.collectives) {
    const count = c.counts.reduce((n, each, block) => n + each * repeats[block]!, 0);
    const pass = c.operator.pass;
    if (count === 0 || pass === "update") continue;
    const behind = hidingKernel(m, p, c, prices, repeats);
    exposed[pass] += count * (behind === undefined ? c.seconds : overlapped(c.seconds, behind, 0));
  }
  return { compute, exposed };
}

function passTime(prices: PassPrices, repeats: readonly number[]): Seconds {
  const { seconds, dispatch, count, block } = prices;
  let device = 0;
  let host = 0;
  for (let i = 0; i < seconds.length; i++) {
    const executions = count[i]! * repeats[block[i]!]!;
    device += executions * seconds[i]!;
    host += executions * dispatch[i]!;
  }
  return Math.max(device, host);
}

/**
 * Mean time of the products that a collective of this kind runs behind; undefined when the next
 * kernel waits for it. Split into tp chunks, a collective also runs behind its own product but for
 * the first chunk.
 */
function hidingKernel(
  m: Model,
  p: Plan,
  { operator: c }: CollectivePrice,
  prices: BlockPrices,
  repeats: readonly number[],
): Seconds | undefined {
  if (c.axis === "ep" || c.axis === "etp") return behindExperts(p, c, prices);
  if (c.axis === "cp") {
    // Keys go round while attention works; heads are exchanged before anything is.
    const round = p.contextExchange === "ring" && c.kind !== "all-to-all";
    return round ? attentionOf(p, prices, c.pass) : undefined;
  }
  if (p.overlapGradientProducts && gathersInput(p, c))
    return meanProduct(prices.passes["input-gradient"], repeats);
  // Frozen matrices have no weight gradient to hide it.
  if (p.overlapGradientProducts && m.adapter === undefined && sendsGradient(p, c))
    return meanProduct(prices.passes["weight-gradient"], repeats);
  if (p.overlapTensorParallel && c.bytes > chunked && c.pass !== "update") {
    const pass = c.pass === "recompute" ? "forward" : c.pass;
    return meanProduct(prices.passes[pass], repeats) * (1 - 1 / p.tp);
  }
  return undefined;
}

/**
 * With two microbatches in flight, one computes while the other's tokens travel: an exchange has an even
 * share of the layers' kernels of its direction to run behind (DualPipe, arXiv 2412.19437 §3.2.1).
 */
function behindExperts(p: Plan, c: CollectiveOperator, prices: BlockPrices): Seconds | undefined {
  if (!p.overlapExpertParallel || c.axis === "etp") return undefined;
  const own = prices.collectives.filter(
    (x) => x.operator.axis === "ep" && isForward(x) === forwardPass(c.pass),
  );
  const exchanges = own.reduce((n, x) => n + x.counts.reduce((a, b) => a + b, 0), 0);
  let compute = 0;
  for (const pass of microbatchPasses) {
    if (forwardPass(pass) !== forwardPass(c.pass)) continue;
    const { seconds, count, block } = prices.passes[pass];
    for (let i = 0; i < seconds.length; i++) {
      if (prices.mixed[block[i]!] === true) compute += seconds[i]! * count[i]!;
    }
  }
  return compute / exchanges;
}

function forwardPass(pass: Pass): boolean {
  return pass === "forward";
}

function isForward(c: CollectivePrice): boolean {
  return forwardPass(c.operator.pass);
}

/** A buffer that is worth cutting into chunks. */
const chunked: Bytes = 2 ** 20;

function gathersInput(p: Plan, c: CollectiveOperator): boolean {
  return p.sequenceParallel && c.kind === "all-gather" && c.pass === "weight-gradient";
}

function sendsGradient(p: Plan, c: CollectiveOperator): boolean {
  const kind = p.sequenceParallel ? "reduce-scatter" : "all-reduce";
  return c.pass === "input-gradient" && c.kind === kind;
}

/** Ring attention computes on the keys it has while the next come; the first arrive before anything runs. */
function attentionOf(p: Plan, prices: BlockPrices, pass: Pass): Seconds {
  return pass === "update" ? 0 : prices.passes[pass].attention * (1 - 1 / p.cp);
}

function meanProduct(prices: PassPrices, repeats: readonly number[]): Seconds {
  const { seconds, count, block, product } = prices;
  let time = 0;
  let executed = 0;
  for (let i = 0; i < seconds.length; i++) {
    if (product[i] === 0) continue;
    const executions = count[i]! * repeats[block[i]!]!;
    time += seconds[i]! * executions;
    executed += executions;
  }
  return executed === 0 ? 0 : time / executed;
}

/** Exposed gathering and scattering of ZeRO-3 in one microbatch. */
export interface ShardingCosts {
  readonly forward: Seconds;
  readonly backward: Seconds;
}

/** ZeRO-3: each layer's weights are gathered while the layer before computes; the first waits. */
export function shardingCosts(
  p: Plan,
  s: Stage,
  { compute, exposed }: StageCosts,
  collectives: readonly CollectiveOperator[],
  network: Communication,
): ShardingCosts {
  if (p.zero < 3 || collectives.length === 0) return unsharded;
  const units = Math.max(1, s.layers);
  let forward = 0;
  let backward = 0;
  for (const c of collectives) {
    const time = c.count * units * network.collective(c.kind, c.axis, c.bytes / units);
    if (c.pass === "forward") forward += time;
    else backward += time;
  }
  const behind = compute.recompute + compute["input-gradient"] + compute["weight-gradient"];
  return {
    forward: behindCompute(p, forward, compute.forward + exposed.forward, units),
    backward: behindCompute(p, backward, behind, units),
  };
}

const unsharded: ShardingCosts = { forward: 0, backward: 0 };

function behindCompute(p: Plan, time: Seconds, behind: Seconds, units: number): Seconds {
  return !p.overlapDataParallel || time === 0 ? time : overlapped(time, behind, time / units);
}
