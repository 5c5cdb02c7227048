/** A run of ten steps over a text made here. */
import { type Loader, byteTokenizer, createLoader, tokenize } from "@trireme/dataloader";
import { type ResolvedRun, defineRun } from "@trireme/run";

export function smallRun(changes: Readonly<Record<string, unknown>> = {}): ResolvedRun {
  return defineRun({
    model: { layers: 2, hidden: 8, heads: 2, context: 16 },
    plan: { globalBatch: 4, dp: 2 },
    data: { path: "made here" },
    optimizer: { learningRate: 0.1, warmup: 2 },
    steps: 10,
    ...changes,
  });
}

export function smallLoader(seed = 1): Loader {
  const documents = Array.from({ length: 20 }, (_, i) => ({
    name: `${i}`,
    text: `document ${i}: ${"abcdefghij".repeat((i % 5) + 3)}`,
  }));
  const dataset = tokenize(documents, byteTokenizer());
  return createLoader({ dataset, sequence: 16, globalBatch: 4, dp: 2, microbatch: 1, seed });
}
