/**
 * Shared experts (DeepSeekMoE, arXiv:2401.06066 §3.2): experts that every token uses beside the
 * routed ones. They become further slots with ids E, E + 1, … so that one plan moves all rows; with
 * a replica of each on every rank (`assignReplicas`, policy `nearest`) none of their rows travels.
 */
import { type Floats, type Routing, checkRouting, floatsLike } from "./routing.ts";
import { requireInteger, requireLength } from "./shape.ts";

/** The shared experts of a layer. */
export interface SharedExpertOptions {
  readonly shared: number;
  /** [T] weight of their output, such as a sigmoid gate; default 1. */
  readonly gate?: Floats;
  /** [T] 1 for a padding token, which uses none. */
  readonly padding?: Uint8Array;
}

/** `routing` with `shared` slots added after the routed ones of each token. */
export function withSharedExperts(routing: Routing, o: SharedExpertOptions): Routing {
  checkRouting(routing);
  const { tokens, experts, topK } = routing;
  const { shared, gate, padding } = o;
  requireInteger("shared", shared, 0);
  if (gate !== undefined) requireLength("gate", gate, tokens, `${tokens} tokens`);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  const width = topK + shared;
  const expertIds = new Int32Array(tokens * width);
  const weights = floatsLike(routing.weights, tokens * width);
  for (let t = 0; t < tokens; t++) {
    const from = t * topK;
    const to = t * width;
    const none = padding !== undefined && padding[t] !== 0;
    for (let j = 0; j < topK; j++) {
      expertIds[to + j] = routing.expertIds[from + j]!;
      weights[to + j] = routing.weights[from + j]!;
    }
    for (let s = 0; s < shared; s++) {
      expertIds[to + topK + s] = none ? -1 : experts + s;
      weights[to + topK + s] = none ? 0 : (gate?.[t] ?? 1);
    }
  }
  return { tokens, experts: experts + shared, topK: width, expertIds, weights };
}
