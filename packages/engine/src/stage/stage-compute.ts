/** What a stage does with one microbatch when the schedule says so: for real, or asleep. */
import type { ActionKind } from "@trireme/schedulers";
import type { Model, Plan, Stage } from "@trireme/workload";
import { crossEntropy, crossEntropyLoss, vocabParallelLoss } from "../operators/cross-entropy.ts";
import type { Parallel } from "../layout/parallel.ts";
import type { Range } from "../memory/slice.ts";
import type { StageWeights } from "../weights/stage-weights.ts";
import type { Tape, Variable } from "../tape/tape.ts";
import type { TokenBuffers } from "./token-buffers.ts";
import type { StageOptions } from "./stage-options.ts";
import { stageForward } from "./transformer.ts";

/** One microbatch in one stage. */
export interface StageFlight {
  readonly stage: Stage;
  readonly microbatch: number;
  readonly training: boolean;
  readonly tape: Tape;
  /** What the stage before gave; none where the stage embeds. */
  input: Variable | undefined;
  /** What it gives, and, when a backward comes, its gradient. */
  output: Variable | undefined;
}

/** A backward, or half of one. */
type BackwardKind = Extract<ActionKind, "B" | "I" | "W">;

export interface StageCompute {
  /** The stage's output, and the sum of the loss over the microbatch's tokens that this rank tells. */
  forward(flight: StageFlight): { readonly output: Variable; readonly loss: number };
  /** After B and I the input has its gradient. */
  backward(flight: StageFlight, kind: BackwardKind): void;
}

/** What real computing needs of a rank. */
export interface ComputeOptions {
  readonly model: Model;
  readonly plan: Plan;
  /** By stage. */
  readonly weights: ReadonlyMap<number, StageWeights>;
  readonly parallel: Parallel;
  /** The tokens of each sample that the rank sees. */
  readonly pieces: readonly Range[];
  readonly tokens: TokenBuffers;
  /** Where experts are, and the routers of the rank's layers. */
  readonly experts: NonNullable<StageOptions["experts"]>;
}

/** Stages that compute. */
export function computedStages(options: ComputeOptions): StageCompute {
  const { model, plan, weights, parallel, pieces, tokens, experts } = options;
  // The mean over the global batch: gradients of all microbatches and replicas just add up.
  const scale = 1 / (plan.globalBatch * plan.sequence);

  /** Of ranks that share out the vocabulary one tells the loss. */
  function loss(tape: Tape, logits: Variable, targets: number, training: boolean): number {
    if (parallel.tensor !== undefined) {
      const { group } = parallel.tensor;
      const sum = vocabParallelLoss(tape, logits, targets, group, training ? scale : undefined);
      return group.rank === 0 ? sum : 0;
    }
    if (!training) return crossEntropyLoss(tape, logits, targets);
    return crossEntropy(tape, logits, targets, scale);
  }

  return {
    forward: ({ stage, microbatch, training, tape, input }) => {
      const row = microbatch * plan.microbatch;
      const parameters = weights.get(stage.stage)!;
      const output = stageForward(
        tape,
        {
          model,
          stage,
          parameters,
          parallel,
          recompute: plan.recompute,
          recomputeLayers: plan.recomputeLayers,
          experts,
        },
        { batch: plan.microbatch, pieces, tokens: tokens.inputs(row), hidden: input },
      );
      if (!stage.head) return { output, loss: 0 };
      return { output, loss: loss(tape, output, tokens.targets(row), training) };
    },
    backward: ({ tape }, kind) => {
      if (kind === "B") tape.backward();
      else if (kind === "I") tape.backwardInput();
      else tape.backwardWeight();
    },
  };
}
