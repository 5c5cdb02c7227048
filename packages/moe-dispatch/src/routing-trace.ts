/**
 * Routing traces for simulations: choices with the unevenness of real routers, without a model.
 * Expert popularity is a Zipf law; its logarithms wander from step to step (drift, an
 * Ornstein-Uhlenbeck walk that neither grows nor dies out); now and then one expert is hot for a
 * while (burst); and within a sequence tokens prefer that sequence's own experts (correlation). The
 * choices of step s depend on the seed and s alone: any step can be drawn without those before.
 */
import { TriremeError, createRng, hash32 } from "@trireme/core";
import { DistinctSampler } from "./distinct-sampler.ts";
import { requireInteger, requireNumber } from "./shape.ts";

/** A trace. */
export interface TraceOptions {
  readonly experts: number;
  readonly topK: number;
  /** Tokens of a step. */
  readonly tokens: number;
  readonly seed: number;
  /** Exponent s of popularity 1/rank^s; 0 is uniform. Default 0. */
  readonly zipf?: number;
  /** Standard deviation of the wandering log popularity; default 0. */
  readonly drift?: number;
  /** Steps over which it forgets; default 100. */
  readonly driftSteps?: number;
  /** Probability that a burst begins in a step; default 0. */
  readonly burst?: number;
  /** Factor on the popularity of the hot expert; default 8. */
  readonly burstFactor?: number;
  /** Steps that a burst lasts; default 10. */
  readonly burstSteps?: number;
  /** Share of tokens that choose by their sequence's popularity; default 0. */
  readonly correlation?: number;
  /** Tokens of a sequence; default 4096. */
  readonly sequence?: number;
}

/** A trace that can be asked for any step. */
export interface RoutingTrace {
  /** [E] share of each expert in the drawing at a step, without the sequences' preferences. */
  popularity(step: number): Float64Array;
  /** [T, k] choices of a step; each token's experts are different. */
  choices(step: number): Int32Array;
}

/** Defines a trace. The most popular experts lie anywhere, by the seed. */
export function routingTrace(o: TraceOptions): RoutingTrace {
  const { experts, topK, tokens, seed } = o;
  requireInteger("experts", experts, 1);
  requireInteger("topK", topK, 1, experts);
  requireInteger("tokens", tokens, 0);
  requireInteger("seed", seed, Number.MIN_SAFE_INTEGER);
  const sequence = o.sequence ?? 4096;
  const driftSteps = o.driftSteps ?? 100;
  const burstSteps = o.burstSteps ?? 10;
  requireInteger("sequence", sequence, 1);
  requireInteger("driftSteps", driftSteps, 1);
  requireInteger("burstSteps", burstSteps, 1);
  const [zipf, drift] = [o.zipf ?? 0, o.drift ?? 0];
  requireNumber("zipf", zipf, 0);
  requireNumber("drift", drift, 0);
  const burstFactor = o.burstFactor ?? 8;
  requireNumber("burstFactor", burstFactor, 0);
  const [burst, correlation] = [share("burst", o.burst), share("correlation", o.correlation)];

  const order = shuffled(experts, hash32(seed, 1));
  const popularity = (step: number): Float64Array => {
    requireInteger("step", step, 0);
    const p = new Float64Array(experts);
    // Beside each share its logarithm, for wanderings that no share can follow.
    const logs = new Float64Array(experts);
    for (let e = 0; e < experts; e++) {
      const wander = drift === 0 ? 0 : drift * wanderAt(seed, e, step, driftSteps);
      p[e] = (order[e]! + 1) ** -zipf * Math.exp(wander);
      logs[e] = wander - zipf * Math.log(order[e]! + 1);
    }
    for (let back = 0; back < burstSteps && back <= step; back++) {
      const draw = createRng(hash32(seed, 3, step - back));
      if (draw.float() >= burst) continue;
      const hot = draw.integer(experts);
      p[hot]! *= burstFactor;
      logs[hot]! += Math.log(burstFactor);
    }
    const total = p.reduce((sum, x) => sum + x, 0);
    if (total > 0 && total < Infinity) return p.map((x) => x / total);
    const most = logs.reduce((a, b) => Math.max(a, b), -Infinity);
    // All at 0 are as popular as each other.
    const shares = logs.map((log) => (most === -Infinity ? 1 : Math.exp(log - most)));
    const sum = shares.reduce((a, b) => a + b, 0);
    return shares.map((part) => part / sum);
  };

  return {
    popularity,
    choices(step) {
      const sampler = new DistinctSampler(popularity(step));
      const rng = createRng(hash32(seed, 4, step));
      const out = new Int32Array(tokens * topK);
      let shift = 0;
      for (let t = 0; t < tokens; t++) {
        if (t % sequence === 0) shift = hash32(seed, 5, step, t / sequence) % experts;
        // A sequence's popularity is the common one, turned to other experts.
        const turn = rng.float() < correlation ? shift : 0;
        sampler.draw(rng, topK, out, t * topK);
        if (turn === 0) continue;
        for (let j = t * topK; j < (t + 1) * topK; j++) out[j] = (out[j]! + turn) % experts;
      }
      return out;
    },
  };
}

/**
 * The Zipf exponent at which the expected most loaded of `experts` has `imbalance` times the mean,
 * for one choice per token; with more choices the imbalance is smaller.
 */
export function zipfFor(o: { readonly experts: number; readonly imbalance: number }): number {
  requireInteger("experts", o.experts, 1);
  if (!(o.imbalance >= 1 && o.imbalance < o.experts) && !(o.experts === 1 && o.imbalance === 1)) {
    throw new TriremeError(
      "MOE_RANGE",
      `imbalance is ${o.imbalance}; of ${o.experts} experts it lies in [1, ${o.experts})`,
    );
  }
  const imbalanceOf = (s: number): number => {
    let total = 0;
    for (let e = 1; e <= o.experts; e++) total += e ** -s;
    return o.experts / total;
  };
  let [low, high] = [0, 1];
  while (imbalanceOf(high) < o.imbalance) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (imbalanceOf(middle) < o.imbalance) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * A stationary walk of variance 1 that forgets over `memory` steps: a weighted sum of the normal
 * deviates of the last 8·memory steps, each of which is a hash, so that no state is carried.
 */
function wanderAt(seed: number, e: number, step: number, memory: number): number {
  const keep = Math.exp(-1 / memory);
  const scale = Math.sqrt(1 - keep * keep);
  let sum = 0;
  let weight = scale;
  for (let back = 0; back < 8 * memory; back++) {
    // Steps before 0 exist too: the walk is already under way when the trace begins.
    sum += weight * normalOf(hash32(seed, 2, e, step - back));
    weight *= keep;
  }
  return sum;
}

/** A standard normal deviate from 32 random bits. */
function normalOf(bits: number): number {
  return createRng(bits).normal();
}

function shuffled(n: number, seed: number): Int32Array {
  const rng = createRng(seed);
  const order = Int32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = rng.integer(i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

function share(name: string, value = 0): number {
  if (value >= 0 && value <= 1) return value;
  throw new TriremeError("MOE_RANGE", `${name} is ${value}; it must be in [0, 1], such as 0.1`);
}
