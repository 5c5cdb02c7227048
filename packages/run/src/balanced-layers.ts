/** Layers of stages where the FLOPs of embedding, layers and head say how many (`plan.stageLayers: balanced`). */
import { balanceStages } from "@trireme/schedulers";
import { type Model, type Plan, elementFlops } from "@trireme/workload";

/**
 * Layers of each stage in model order, so that the stage with the most FLOPs has as few as can be. A large vocabulary
 * takes layers from the last stage, all of them if need be ("Redis" of arXiv 2411.05288 §6.1).
 */
export function balancedLayers(m: Model, p: Plan): readonly number[] {
  const flops = elementFlops(m, p);
  const balance = balanceStages({
    elements: `E${"t".repeat(m.layers)}L`,
    ranks: p.pp,
    chunks: p.vpp,
    cost: (element) => flops[element]!,
  });
  // A plan has no more stages than layers, and without limits of memory that is all that is asked.
  return balance.ok ? balance.layout.stages.map((letters) => letters.split("t").length - 1) : [];
}
