import { TriremeError } from "@trireme/core";
import type { Fp8Scaling } from "@trireme/run";
import type { Model, Plan } from "@trireme/workload";
import type { OptimizerOptions } from "../weights/optimizer.ts";
import { expertWishes, modelWishes } from "../parameters/supported-model.ts";

/** What a plan or model may ask for beyond the engine's means: the wish, whether it is there, and the way out. */
function wishes(model: Model, plan: Plan): readonly (readonly [string, boolean, string])[] {
  return [
    [
      `contextExchange all-to-all over cp ${plan.cp} of ${model.kvHeads / plan.tp} key heads`,
      plan.cp > 1 &&
        plan.contextExchange === "all-to-all" &&
        (model.kvHeads / plan.tp) % plan.cp !== 0,
      "contextExchange ring",
    ],
    [
      "unequal shares of the batch for pipelines that are alike",
      plan.pipelines === undefined && plan.pipelineBatches !== undefined,
      "pipelines, or no pipelineBatches",
    ],
    [
      `ZeRO ${plan.zero} over pipelines that differ`,
      plan.pipelines !== undefined && plan.zero > 0,
      "zero 0",
    ],
    [
      `recompute ${plan.recompute}`,
      ["operators", "rematerialise", "experts"].includes(plan.recompute),
      "recompute none, selective or full",
    ],
    // Tensor-parallel ranks each compute over their part of the vocabulary.
    ["vocabParallelLoss false", plan.tp > 1 && !plan.vocabParallelLoss, "vocabParallelLoss true"],
    ["scatterGather", plan.tp > 1 && plan.scatterGather, "sequenceParallel instead"],
    [
      "overlapTensorParallel",
      plan.tp > 1 && plan.overlapTensorParallel,
      "overlapTensorParallel false",
    ],
    [`precision ${plan.precision}`, plan.precision === "fp16", "precision fp32 or bf16"],
    [
      `gradientPrecision ${plan.gradientPrecision}`,
      plan.gradientPrecision === "fp16",
      "gradientPrecision fp32 or bf16",
    ],
    [
      `reductionPrecision ${plan.reductionPrecision}`,
      plan.reductionPrecision === "fp16",
      "reductionPrecision fp32 or bf16",
    ],
    ["gatheredCopies", plan.gatheredCopies === true, "no gatheredCopies"],
    [
      `momentPrecision ${plan.momentPrecision}`,
      plan.momentPrecision === "bf16",
      "momentPrecision fp32",
    ],
    [
      `matrixPrecision ${plan.matrixPrecision}`,
      plan.matrixPrecision !== undefined && plan.matrixPrecision !== "fp8",
      "matrixPrecision fp8, or none",
    ],
    [`document ${plan.document}`, plan.document !== undefined, "no document"],
    [
      `attentionPrecision ${plan.attentionPrecision}`,
      plan.attentionPrecision !== undefined,
      "no attentionPrecision",
    ],
    [
      `activationPrecision ${plan.activationPrecision}`,
      plan.activationPrecision !== undefined,
      "no activationPrecision",
    ],
    [`dropout ${plan.dropout}`, plan.dropout !== 0, "dropout 0"],
    ["flashAttention false", !plan.flashAttention, "flashAttention true"],
    // A rank copies its messages itself: they take its own time.
    ["overlapPointToPoint", plan.overlapPointToPoint, "overlapPointToPoint false"],
    ["fusedNorm false", !plan.fusedNorm, "fusedNorm true"],
    ["fusedElementwise false", !plan.fusedElementwise, "fusedElementwise true"],
    [`vocabulary ${plan.vocabulary}`, plan.vocabulary !== undefined, "no vocabulary"],
    ["fusedLoss false", plan.fusedLoss === false, "no fusedLoss"],
    ["fusedRotary false", plan.fusedRotary === false, "no fusedRotary"],
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
    ...modelWishes(model),
    ...expertWishes(plan),
  ];
}

/** Throws `ENGINE_PLAN`, in one line, for a plan that asks for what the embedded engine does not carry out. */
export function checkPlan(model: Model, plan: Plan): void {
  refuse(wishes(model, plan));
}

/** Throws `ENGINE_PLAN`, in one line, for what is asked for beside a plan and does not go with it. */
export function checkBeside(
  { pipelines, matrixPrecision }: Plan,
  optimizer: OptimizerOptions["kind"],
  fp8Scaling: Fp8Scaling | undefined,
): void {
  if (pipelines === undefined) return;
  refuse([
    // Each pipeline would add up the norms of its tensors in an order of its own, and drift.
    ["lamb over pipelines that differ", optimizer === "lamb", "adamw"],
    [
      "delayed FP8 scales over pipelines that differ",
      matrixPrecision === "fp8" && fp8Scaling === "delayed",
      "engine.fp8Scaling current",
    ],
  ]);
}

function refuse(wished: ReturnType<typeof wishes>): void {
  const refused = wished.find(([, asked]) => asked);
  if (refused === undefined) return;
  const [what, , instead] = refused;
  throw new TriremeError(
    "ENGINE_PLAN",
    `the embedded engine does not carry out ${what}; use ${instead}`,
  );
}
