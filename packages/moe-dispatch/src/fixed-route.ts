/** Routers without logits: by the token itself (Hash Layers, arXiv:2106.04426), or evenly in turn. */
import { TriremeError, hash32 } from "@trireme/core";
import type { Routing } from "./routing.ts";
import { requireInteger, requireLength } from "./shape.ts";

/** A hash router. */
export interface HashRouteOptions {
  readonly experts: number;
  readonly topK: number;
  readonly seed: number;
  readonly padding?: Uint8Array;
}

/**
 * Routes every token by a hash of its vocabulary id (any safe integer, also above 2³¹): the same id
 * goes to the same k different experts everywhere. Weights are 1/k.
 */
export function hashRoute(vocabularyIds: ArrayLike<number>, o: HashRouteOptions): Routing {
  const { experts, topK, seed, padding } = o;
  const tokens = vocabularyIds.length;
  requireInteger("experts", experts, 1);
  requireInteger("topK", topK, 1, experts);
  requireInteger("seed", seed, Number.MIN_SAFE_INTEGER);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  const { expertIds, weights } = blank(tokens, topK);
  for (let t = 0; t < tokens; t++) {
    if (padding !== undefined && padding[t] !== 0) continue;
    const id = vocabularyIds[t]!;
    if (!Number.isSafeInteger(id)) {
      throw new TriremeError("MOE_TOKEN", `token ${t} has id ${id}; ids must be safe integers`);
    }
    const at = t * topK;
    for (let j = 0; j < topK; j++) {
      let e = hash32(seed, id >>> 0, Math.floor(id / 2 ** 32), j) % experts;
      // Walks past the experts it has: k ≤ E, so one is free.
      for (let i = at; i < at + j;) {
        if (expertIds[i] === e) {
          e = (e + 1) % experts;
          i = at;
        } else i++;
      }
      expertIds[at + j] = e;
      weights[at + j] = 1 / topK;
    }
  }
  return { tokens, experts, topK, expertIds, weights };
}

/** A uniform router. */
export interface UniformRouteOptions {
  readonly tokens: number;
  readonly experts: number;
  readonly topK: number;
  /** Id of the first token in the whole batch, so that shards continue each other; default 0. */
  readonly firstToken?: number;
}

/**
 * Deals experts out in turn: slot i of the whole batch goes to expert i mod E, so that loads differ
 * by at most one. This is the forced balance of published throughput figures. Weights are 1/k.
 */
export function uniformRoute(o: UniformRouteOptions): Routing {
  const { tokens, experts, topK } = o;
  requireInteger("tokens", tokens, 0);
  requireInteger("experts", experts, 1);
  requireInteger("topK", topK, 1, experts);
  const firstToken = o.firstToken ?? 0;
  requireInteger("firstToken", firstToken, 0);
  const { expertIds, weights } = blank(tokens, topK);
  // Reduced before the product, which could pass 2⁵³.
  let e = ((firstToken % experts) * topK) % experts;
  for (let slot = 0; slot < expertIds.length; slot++) {
    expertIds[slot] = e;
    weights[slot] = 1 / topK;
    if (++e === experts) e = 0;
  }
  return { tokens, experts, topK, expertIds, weights };
}

function blank(tokens: number, topK: number): { expertIds: Int32Array; weights: Float32Array } {
  return {
    expertIds: new Int32Array(tokens * topK).fill(-1),
    weights: new Float32Array(tokens * topK),
  };
}
