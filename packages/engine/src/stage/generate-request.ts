/** What may be asked of a text, and whether one came of it; checked here, since a rank that throws ends all. */
import { TriremeError, createRng } from "@trireme/core";
import type { GenerateRequest } from "@trireme/runtime";
import type { Model } from "@trireme/workload";
import { type GenerateOptions, noToken } from "./generate.ts";

/** Tokens of a text: every rank has them in memory, at four bytes each. */
const longestText = 2 ** 24;

/**
 * A request as ranks take it. Throws `PROMPT` for a prompt without tokens, or with one that the model
 * does not have, `TOKENS`, `TEMPERATURE` and `SEED` for numbers that are none of these.
 */
export function generateOptions(request: GenerateRequest, { vocab }: Model): GenerateOptions {
  const { prompt, tokens: count, temperature, seed } = request;
  if (prompt.length === 0) {
    throw new TriremeError("PROMPT", "the prompt is empty; give at least one token");
  }
  const strange = prompt.find((token) => token < 0 || token >= vocab);
  if (strange !== undefined) {
    throw new TriremeError(
      "PROMPT",
      `token ${strange} of the prompt is outside of the vocabulary 0..${vocab - 1}`,
    );
  }
  if (!Number.isInteger(count) || count < 0 || prompt.length + count > longestText) {
    throw new TriremeError(
      "TOKENS",
      `tokens ${count} to generate must be an integer in 0..${Math.max(0, longestText - prompt.length)}`,
    );
  }
  if (!(temperature >= 0 && temperature < Infinity)) {
    throw new TriremeError(
      "TEMPERATURE",
      `temperature ${temperature} must be a finite number of at least 0; 0 takes the likeliest token`,
    );
  }
  // Throws for a seed that is none.
  createRng(seed);
  return { prompt, count, temperature, seed };
}

/** Throws `LOGITS` for a text that stops where the model's logits were no numbers. */
export function checkText(text: Int32Array): Int32Array {
  const place = text.indexOf(noToken);
  if (place < 0) return text;
  throw new TriremeError(
    "LOGITS",
    `the model's logits of token ${place} of the text are no finite numbers; restore a checkpoint whose weights are`,
  );
}
