/**
 * Tensor parallelism inside an encoder, as in the decoder: a reduction behind attention and one behind
 * the feed-forward block; under sequence parallelism gathers and scattered reductions, and a gather
 * before the projector, which every rank has whole.
 */
import { trainsEncoder } from "./encoder.ts";
import type { Encoder, Model } from "./model.ts";
import type { Plan } from "./plan.ts";
import { bytesOf } from "./precision.ts";
import type { Push } from "./stage-collectives.ts";

/** Appends an encoder's collectives along "tp". */
export function encoderCollectives(push: Push, m: Model, p: Plan, e: Encoder): void {
  const activation = ((p.microbatch * e.tokens) / p.cp) * e.hidden * bytesOf(p.precision);
  const blocks = 2 * e.layers;
  const trained = trainsEncoder(m, e);
  const again = trained && p.recompute === "full" ? blocks : 0;
  const backward = trained ? blocks : 0;
  if (!p.sequenceParallel) {
    push("all-reduce", "tp", "forward", activation, blocks);
    push("all-reduce", "tp", "recompute", activation, again);
    push("all-reduce", "tp", "input-gradient", activation, backward);
    return;
  }
  push("all-gather", "tp", "forward", activation, blocks + 1);
  push("reduce-scatter", "tp", "forward", activation, blocks);
  push("all-gather", "tp", "recompute", activation, again);
  push("reduce-scatter", "tp", "recompute", activation, again);
  push("all-gather", "tp", "input-gradient", activation, backward);
  push("reduce-scatter", "tp", "input-gradient", activation, backward);
  // Inputs are kept as the rank's part; the patches' gradient is that of all tokens.
  push("all-gather", "tp", "weight-gradient", activation, trained ? blocks + 1 : 0);
}
