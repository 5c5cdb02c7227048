/**
 * What a layer's router decides for the tokens of one microbatch, and the gradient of its logits:
 * of the weights it gave, and of the losses that keep it balanced. The decisions are those of
 * `@trireme/moe-dispatch`; this holds what they depend on from step to step.
 */
import {
  type Routing,
  type WeightOptions,
  balanceLoss,
  dropTokens,
  expertCapacity,
  route,
  routeGradient,
  tokensPerExpert,
  updateSelectionBias,
  zLoss,
} from "@trireme/moe-dispatch";
import { type ResolvedRouter, type WholeRouter, wholeRouter } from "@trireme/run";
import type { Experts } from "@trireme/workload";

/** State of one layer's router that lives from step to step, in the rank's memory. */
export interface RouterState {
  /** Tokens per expert of the last step's global batch; zeros before the first. */
  readonly load: Float32Array;
  /** Added to the scores for the choice. */
  readonly bias: Float32Array | undefined;
}

/** The tokens a router has sent where. */
export interface Routed {
  /** After dropping. */
  readonly kept: Routing;
  /** Before it: what losses take. */
  readonly chosen: Routing;
}

/** What experts take at most. */
export interface Capacity {
  /** Rows of an expert in multiples of an even share. */
  readonly factor: number;
  /** The part of each token of a microbatch that is dropped from by itself. */
  readonly groups: Int32Array;
}

/** The tokens of each part; one list where all are in one. */
function membersOf(groups: Int32Array): readonly Int32Array[] {
  const members = new Map<number, number[]>();
  groups.forEach((group, token) => {
    const some = members.get(group);
    if (some === undefined) members.set(group, [token]);
    else some.push(token);
  });
  return Array.from(members.values(), (tokens) => Int32Array.from(tokens));
}

/** Keeps what fits, by parts of the tokens. */
function dropBeyond(
  routing: Routing,
  factor: number,
  parts: readonly Int32Array[],
  options: WholeRouter,
): Routing {
  const { topK, experts } = routing;
  const { dropPolicy: policy, capacityGroups: deviceGroups = experts } = options;
  const drop = (some: Routing): Routing => {
    const { tokens } = some;
    const capacity = expertCapacity({ tokens, topK, experts: deviceGroups, factor });
    return dropTokens(some, { capacity, policy, deviceGroups });
  };
  if (parts.length === 1) return drop(routing);
  const [expertIds, weights] = [routing.expertIds.slice(), routing.weights.slice()];
  for (const members of parts) {
    const tokens = members.length;
    const ids = new Int32Array(tokens * topK);
    const theirs = new Float64Array(tokens * topK);
    members.forEach((token, i) => {
      ids.set(expertIds.subarray(token * topK, (token + 1) * topK), i * topK);
      theirs.set(weights.subarray(token * topK, (token + 1) * topK), i * topK);
    });
    const kept = drop({ tokens, topK, experts, expertIds: ids, weights: theirs });
    members.forEach((token, i) => {
      expertIds.set(kept.expertIds.subarray(i * topK, (i + 1) * topK), token * topK);
      weights.set(kept.weights.subarray(i * topK, (i + 1) * topK), token * topK);
    });
  }
  return { ...routing, expertIds, weights };
}

export class Router {
  /** Tokens per expert so far in this step, on this rank. */
  readonly counts: Int32Array;
  readonly #experts: Experts;
  readonly #options: WholeRouter;
  readonly #state: RouterState;
  readonly #capacity: Capacity | undefined;
  readonly #parts: readonly Int32Array[];
  readonly #batchTokens: number;

  /**
   * @param capacity Undefined where no token is dropped.
   * @param batchTokens Tokens of a global batch.
   */
  constructor(
    experts: Experts,
    options: ResolvedRouter,
    state: RouterState,
    capacity: Capacity | undefined,
    batchTokens: number,
  ) {
    this.#experts = experts;
    this.#options = wholeRouter(experts, options);
    this.#state = state;
    this.#capacity = capacity;
    this.#parts = capacity === undefined ? [] : membersOf(capacity.groups);
    this.#batchTokens = batchTokens;
    this.counts = new Int32Array(experts.count);
  }

  /** Chooses for logits [T, E]. */
  route(logits: Float32Array): Routed {
    const { active: topK } = this.#experts;
    const { bias } = this.#state;
    const { groups } = this.#options;
    const chosen = route(logits, {
      ...this.#weighting,
      topK,
      ...(bias !== undefined && { bias }),
      ...(groups !== undefined && { groups }),
    });
    if (this.#capacity === undefined) return { kept: chosen, chosen };
    // Other numbers of tokens, as in generation, are one part.
    const { factor, groups: parts } = this.#capacity;
    const all = chosen.tokens === parts.length ? this.#parts : [parts];
    return { kept: dropBeyond(chosen, factor, all, this.#options), chosen };
  }

  /** Gradient of logits [T, E] from that of the kept weights [T, k]; counts the tokens. */
  gradient(logits: Float32Array, routed: Routed, weights: Float32Array): Float32Array {
    const { count: experts } = this.#experts;
    const { balanceLoss: balance, zLoss: z } = this.#options;
    const into = new Float32Array(logits.length);
    // Weights are shares of all that were chosen: a dropped slot passes nothing, but is counted.
    const kept = weights.map((g, slot) => (routed.kept.expertIds[slot] === -1 ? 0 : g));
    routeGradient(logits, routed.chosen, kept, this.#weighting, into);
    const counts = tokensPerExpert(routed.chosen.expertIds, experts);
    counts.forEach((count, e) => {
      this.counts[e]! += count;
    });
    const { load } = this.#state;
    if (balance > 0 && load.some((count) => count > 0)) {
      const scoring = this.#options.scoring === "sigmoid" ? "sigmoid" : "softmax";
      const whole = { tokens: this.#batchTokens, counts: load };
      add(
        balanceLoss(logits, routed.chosen, { coefficient: balance, scoring, whole }).gradient,
        into,
      );
    }
    if (z > 0) {
      const o = { experts, coefficient: z, wholeTokens: this.#batchTokens };
      add(zLoss(logits, o).gradient, into);
    }
    return into;
  }

  /** Ends a step, given the tokens per expert of the whole global batch. */
  endStep(counts: Int32Array): void {
    const { load, bias } = this.#state;
    load.set(counts);
    if (bias !== undefined) updateSelectionBias(bias, counts, this.#options.biasRate);
    this.counts.fill(0);
  }

  get #weighting(): WeightOptions {
    const { scoring, scale } = this.#options;
    return { experts: this.#experts.count, scoring, scale };
  }
}

function add(x: ArrayLike<number>, into: Float32Array): void {
  for (let i = 0; i < into.length; i++) into[i]! += x[i]!;
}
