import { TriremeError } from "@trireme/core";
import type { Model, Plan } from "@trireme/workload";

/** Refuses, in one line, a plan that asks for what the embedded engine does not carry out. */
export function checkPlan(model: Model, plan: Plan): void {
  const refuse = (what: string, instead: string): never => {
    throw new TriremeError(
      "ENGINE_PLAN",
      `the embedded engine does not carry out ${what}; use ${instead}`,
    );
  };
  if (plan.tp !== 1) refuse(`tp ${plan.tp}`, "tp 1 with more dp or pp");
  if (plan.zero !== 0) refuse(`zero ${plan.zero}`, "zero 0");
  if (plan.recompute !== "none") refuse(`recompute ${plan.recompute}`, "recompute none");
  if (plan.precision !== "fp32") refuse(`precision ${plan.precision}`, "precision fp32");
  if (model.position === "learned" && plan.sequence > model.context) {
    refuse(
      `sequence ${plan.sequence} on a model with context ${model.context}`,
      "a shorter sequence",
    );
  }
}
