import { TriremeError } from "@trireme/core";
import type { Model, Plan } from "@trireme/workload";

/** What a plan or model may ask for beyond the engine's means: the wish, whether it is there, and the way out. */
function wishes(model: Model, plan: Plan): readonly (readonly [string, boolean, string])[] {
  return [
    [`tp ${plan.tp}`, plan.tp !== 1, "tp 1 with more dp or pp"],
    [`cp ${plan.cp}`, plan.cp !== 1, "cp 1 with more dp or pp"],
    [`zero ${plan.zero}`, plan.zero !== 0, "zero 0"],
    [`recompute ${plan.recompute}`, plan.recompute !== "none", "recompute none"],
    [`precision ${plan.precision}`, plan.precision !== "fp32", "precision fp32"],
    [
      `gradientPrecision ${plan.gradientPrecision}`,
      plan.gradientPrecision !== "fp32",
      "gradientPrecision fp32",
    ],
    [
      `matrixPrecision ${plan.matrixPrecision}`,
      plan.matrixPrecision !== undefined,
      "no matrixPrecision",
    ],
    [`dropout ${plan.dropout}`, plan.dropout !== 0, "dropout 0"],
    ["flashAttention false", !plan.flashAttention, "flashAttention true"],
    ["overlapDataParallel", plan.overlapDataParallel, "overlapDataParallel false"],
    // A rank copies its messages itself: they take its own time.
    ["overlapPointToPoint", plan.overlapPointToPoint, "overlapPointToPoint false"],
    ["fusedNorm false", !plan.fusedNorm, "fusedNorm true"],
    ["fusedElementwise false", !plan.fusedElementwise, "fusedElementwise true"],
    [`flashVersion ${plan.flashVersion}`, plan.flashVersion !== undefined, "no flashVersion"],
    [
      `activation ${model.activation}`,
      model.activation !== "gelu" && model.activation !== "swiglu",
      "gelu or swiglu",
    ],
    [
      `sequence ${plan.sequence} on a model with context ${model.context}`,
      model.position === "learned" && plan.sequence > model.context,
      "a shorter sequence",
    ],
  ];
}

/** Throws `ENGINE_PLAN`, in one line, for a plan that asks for what the embedded engine does not carry out. */
export function checkPlan(model: Model, plan: Plan): void {
  const refused = wishes(model, plan).find(([, asked]) => asked);
  if (refused === undefined) return;
  const [what, , instead] = refused;
  throw new TriremeError(
    "ENGINE_PLAN",
    `the embedded engine does not carry out ${what}; use ${instead}`,
  );
}
