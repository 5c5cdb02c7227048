import { TriremeError } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import type { Model, Plan } from "@trireme/workload";

/** The token ids of a batch where every thread can read them, checked: kernels trust them. */
export function batchTokens(batch: Batch, { vocab }: Model, plan: Plan): Int32Array {
  const { tokens, rows, width } = batch;
  const { globalBatch, sequence } = plan;
  const asked = `the plan asks for ${globalBatch} × (${sequence} + 1) = ${globalBatch * (sequence + 1)}`;
  if (tokens.length !== globalBatch * (sequence + 1)) {
    throw new TriremeError("BATCH", `the batch has ${tokens.length} tokens, ${asked}`);
  }
  if (rows !== globalBatch || width !== sequence + 1) {
    throw new TriremeError("BATCH", `the batch is of ${rows} × ${width} tokens, ${asked}`);
  }
  for (const token of tokens) {
    if (token < 0 || token >= vocab) {
      throw new TriremeError(
        "BATCH",
        `token ${token} is outside of the vocabulary 0..${vocab - 1}`,
      );
    }
  }
  if (tokens.buffer instanceof SharedArrayBuffer) return tokens;
  const copy = new Int32Array(new SharedArrayBuffer(tokens.byteLength));
  copy.set(tokens);
  return copy;
}

/** Throws `LEARNING_RATE` for one that would make weights no numbers. */
export function checkLearningRate(learningRate: number): void {
  if (Number.isFinite(learningRate)) return;
  throw new TriremeError("LEARNING_RATE", `learning rate ${learningRate} is not a finite number`);
}
