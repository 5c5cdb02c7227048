/**
 * What a layer's router decides for the tokens of one microbatch, and the gradient of its logits:
 * of the weights it gave, and of the losses that keep it balanced. The decisions are those of
 * `@trireme/moe-dispatch`; this holds what they depend on from step to step.
 */
import {
  type DropOptions,
  type GroupLimit,
  type Routing,
  type Scoring,
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
import type { Experts } from "@trireme/workload";
import type { CapacityParts } from "./capacity-groups.ts";

/** How experts are chosen and kept busy. */
export interface RouterOptions {
  /**
   * How logits become weights. Default: sigmoid with a selection bias, else softmax, over the chosen
   * experts, or over all where one is chosen.
   */
  readonly scoring?: Scoring;
  /**
   * Coefficient of the balance loss over the global batch (Switch, 2021, eq. 4), whose tokens per
   * expert are those of the step before: a pipeline's first backward comes before its last forward.
   * Default 0.01, or 0 with a selection bias.
   */
  readonly balanceLoss?: number;
  /** Coefficient of the z-loss (ST-MoE, 2022, eq. 5); default 0. */
  readonly zLoss?: number;
  /** Factor on all weights (DeepSeek's routed scaling factor); default 1. */
  readonly scale?: number;
  /** Limits each token to the experts of a few groups (DeepSeek-V3, section 2.1.2). */
  readonly groups?: GroupLimit;
  /** Whether experts at their capacity keep the first tokens, the default, or those of the largest weights. */
  readonly dropPolicy?: DropOptions["policy"];
  /** Groups of experts that share a capacity, as those of a device (MegaScale-MoE); default each by itself. */
  readonly capacityGroups?: number;
  /** Whose tokens are dropped by themselves, where there is a capacity; default each rank's of a microbatch. */
  readonly capacityParts?: CapacityParts;
  /** What the selection bias moves by after a step (DeepSeek-V3, section 2.1.2); default 0.001. */
  readonly biasRate?: number;
}

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
  options: RouterOptions,
): Routing {
  const { topK, experts } = routing;
  const { dropPolicy: policy = "position", capacityGroups: deviceGroups = experts } = options;
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
  readonly #options: RouterOptions;
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
    options: RouterOptions,
    state: RouterState,
    capacity: Capacity | undefined,
    batchTokens: number,
  ) {
    this.#experts = experts;
    this.#options = options;
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
    const { balance, z } = this.#coefficients;
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
      const scoring = this.#scoring === "sigmoid" ? "sigmoid" : "softmax";
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
    if (bias !== undefined) updateSelectionBias(bias, counts, this.#options.biasRate ?? 1e-3);
    this.counts.fill(0);
  }

  get #weighting(): WeightOptions {
    const { count: experts } = this.#experts;
    return { experts, scoring: this.#scoring, scale: this.#options.scale ?? 1 };
  }

  get #scoring(): Scoring {
    const { selectionBias, active } = this.#experts;
    const { scoring } = this.#options;
    if (scoring !== undefined) return scoring;
    // The softmax over one chosen expert is 1 whatever the router says: it would not learn.
    if (selectionBias) return "sigmoid";
    return active === 1 ? "softmax-before" : "softmax-after";
  }

  get #coefficients(): { readonly balance: number; readonly z: number } {
    const balance = this.#options.balanceLoss ?? (this.#experts.selectionBias ? 0 : 0.01);
    return { balance, z: this.#options.zLoss ?? 0 };
  }
}

function add(x: ArrayLike<number>, into: Float32Array): void {
  for (let i = 0; i < into.length; i++) into[i]! += x[i]!;
}
