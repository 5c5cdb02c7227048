/** What the elements of a pipeline's chain compute: layouts that balance stages weigh them by it. */
import type { Flops } from "@trireme/core";
import { firstLayerOf, layerFormAt, layerForms } from "./layer-form.ts";
import type { Model } from "./model.ts";
import type { Plan } from "./plan.ts";
import type { Stage } from "./stage.ts";
import { stageOperators } from "./stage-operators.ts";

/**
 * FLOPs of one microbatch, forward and backward, on one rank: of the embedding with the encoders, of each layer in model
 * order, and of the head with the prediction modules; layers + 2 numbers. With them `balanceStages` of
 * `@trireme/schedulers` redistributes layers for a large vocabulary ("Redis" of arXiv 2411.05288 §6.1).
 */
export function elementFlops(m: Model, p: Plan): Float64Array {
  const flops = (part: Partial<Stage>): Flops => {
    const stage = { stage: 0, firstLayer: 0, layers: 0, embedding: false, head: false, ...part };
    return stageOperators(m, p, stage).operators.reduce(
      (sum, o) => sum + (o.pass === "update" ? 0 : o.count * o.flops),
      0,
    );
  };
  const byForm = layerForms(m).map((_, i) => flops({ firstLayer: firstLayerOf(m, i), layers: 1 }));
  const elements = new Float64Array(m.layers + 2);
  elements[0] = flops({ embedding: true });
  for (let layer = 0; layer < m.layers; layer++)
    elements[1 + layer] = byForm[layerFormAt(m, layer)]!;
  elements[m.layers + 1] = flops({ head: true });
  return elements;
}
