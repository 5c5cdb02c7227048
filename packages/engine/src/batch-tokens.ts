import { TriremeError } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import type { Model, Plan } from "@trireme/workload";

/** The token ids of a batch where every thread can read them, checked: kernels trust them. */
export function batchTokens({ tokens }: Batch, model: Model, plan: Plan): Int32Array {
  const expected = plan.globalBatch * (plan.sequence + 1);
  if (tokens.length !== expected) {
    throw new TriremeError(
      "BATCH",
      `the batch has ${tokens.length} tokens, the plan asks for ${plan.globalBatch} × (${plan.sequence} + 1) = ${expected}`,
    );
  }
  for (const token of tokens) {
    if (token < 0 || token >= model.vocab) {
      throw new TriremeError(
        "BATCH",
        `token ${token} is outside of the vocabulary 0..${model.vocab - 1}`,
      );
    }
  }
  if (tokens.buffer instanceof SharedArrayBuffer) return tokens;
  const copy = new Int32Array(new SharedArrayBuffer(tokens.byteLength));
  copy.set(tokens);
  return copy;
}

/** Throws `PROMPT` for a prompt without tokens, or with one that the model does not have. */
export function checkPrompt(prompt: Int32Array, { vocab }: Model): void {
  const strange = prompt.find((token) => token < 0 || token >= vocab);
  if (prompt.length > 0 && strange === undefined) return;
  throw new TriremeError(
    "PROMPT",
    prompt.length === 0
      ? "the prompt is empty; give at least one token"
      : `token ${strange} of the prompt is outside of the vocabulary 0..${vocab - 1}`,
  );
}
