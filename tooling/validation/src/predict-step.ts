/** A measured iteration against the estimate of the same model, plan and cluster. */
import { TriremeError } from "@trireme/core";
import { type Breakdown, estimate } from "@trireme/cost-model";
import { type Cluster, hostOf } from "@trireme/topology";
import { type Model, type PlanOptions, definePlan } from "@trireme/workload";
import type { Group, Outcome } from "./outcome.ts";

/**
 * The outcome of one iteration time. A plan that breaks a rule is skipped with the rule; memory is
 * not checked, since the run did happen.
 */
export function predictStep(
  group: Group,
  id: string,
  measured: number,
  model: () => Model,
  options: PlanOptions,
  cluster: () => Cluster,
  family?: string,
): Outcome {
  try {
    const m = model();
    const plan = definePlan(m, options);
    const step = { model: m, plan, cluster: cluster() };
    const e = estimate({ ...step, checkMemory: false });
    if (!e.ok) return { group, id, skipped: `not estimated: ${e.reason}` };
    return {
      group,
      id,
      measured,
      predicted: e.step,
      claim: {
        kind: m.experts === undefined ? "step" : "expert-step",
        accelerator: hostOf(step.cluster, 0).accelerator,
      },
      detail: describe(e.breakdown),
      step,
      ...(family === undefined ? {} : { family }),
    };
  } catch (error) {
    if (error instanceof TriremeError) return { group, id, skipped: `refused: ${error.message}` };
    throw error;
  }
}

/** The breakdown in per cent of the step. */
function describe(breakdown: Breakdown): string {
  const parts = Object.entries(breakdown).map(
    ([cause, seconds]) => [cause, Number(seconds)] as const,
  );
  const step = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  return parts
    .filter(([, seconds]) => seconds >= 0.005 * step)
    .map(([cause, seconds]) => `${cause} ${((100 * seconds) / step).toFixed(0)} %`)
    .join(", ");
}
