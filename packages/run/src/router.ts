/** How routers choose, checked against the model and the plan that they are for. */
import { nearestDivisor } from "@trireme/core";
import { type DropOptions, type Scoring, checkGroupLimit } from "@trireme/moe-dispatch";
import type { Experts, Model, Plan } from "@trireme/workload";
import type { RouterSection } from "./description.ts";
import { type Resolution, stated } from "./resolution.ts";
import type { ResolvedRouter } from "./resolved.ts";

/** A router of which nothing is left to derive. */
export interface WholeRouter extends ResolvedRouter {
  readonly scoring: Scoring;
  readonly balanceLoss: number;
  readonly zLoss: number;
  readonly scale: number;
  readonly biasRate: number;
  readonly dropPolicy: DropOptions["policy"];
}

/** What is stated of routers, and for the rest the defaults that `ResolvedRouter` names. */
export function wholeRouter(experts: Experts, router: ResolvedRouter = {}): WholeRouter {
  const { selectionBias, active } = experts;
  // The softmax over one chosen expert is 1 whatever the router says: it would not learn.
  const softmax = active === 1 ? "softmax-before" : "softmax-after";
  return {
    scoring: selectionBias ? "sigmoid" : softmax,
    balanceLoss: selectionBias ? 0 : 0.01,
    zLoss: 0,
    scale: 1,
    biasRate: 1e-3,
    dropPolicy: "position",
    ...router,
  };
}

/** Checks that all that is stated has something to act on. */
export function resolveRouter(
  resolution: Resolution,
  section: RouterSection,
  { experts }: Model,
  { expertCapacity }: Plan,
): ResolvedRouter | undefined {
  if (experts === undefined) {
    resolution.problem(["router"], undefined, "the model has no experts", "leave router out");
    return undefined;
  }
  const { groups, capacityParts, ...rest } = section;
  const { count, active, selectionBias } = experts;
  if (expertCapacity === undefined) {
    for (const key of ["dropPolicy", "capacityGroups", "capacityParts"] as const) {
      if (section[key] === undefined) continue;
      resolution.problem(
        ["router", key],
        typeof section[key] === "object" ? undefined : section[key],
        "needs experts of a capacity",
        "state plan.expertCapacity",
      );
    }
  }
  const { biasRate, capacityGroups } = section;
  if (biasRate !== undefined && !selectionBias) {
    const rule = "needs a selection bias";
    resolution.problem(["router", "biasRate"], biasRate, rule, "state model.experts.selectionBias");
  }
  if (capacityGroups !== undefined && count % capacityGroups !== 0) {
    const nearest = nearestDivisor(count, capacityGroups);
    const rule = `must divide the ${count} experts`;
    resolution.problem(["router", "capacityGroups"], capacityGroups, rule, `nearest: ${nearest}`);
  }
  const limit = groups && stated(groups);
  if (limit !== undefined) {
    resolution.attempt(["router", "groups"], limit, () => checkGroupLimit(limit, count, active));
  }
  return {
    ...stated(rest),
    ...(limit && { groups: limit }),
    ...(capacityParts && { capacityParts: stated(capacityParts) }),
  };
}
