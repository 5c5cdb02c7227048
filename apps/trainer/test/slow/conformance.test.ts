/** The real runtimes, held to what `@trireme/runtime` promises of every one. */
import { characterTokenizer, createLoader, tokenize } from "@trireme/dataloader";
import { embeddedRuntime } from "@trireme/engine";
import { type ResolvedRun, defineRun } from "@trireme/run";
import type { Runtime } from "@trireme/runtime";
import { conformance } from "@trireme/runtime/conformance";
import { simulatedRuntime } from "@trireme/simulator";
import { describe, expect, it } from "vitest";

const documents = [{ name: "a", text: "in one rhythm, three banks of oars. ".repeat(40) }];
const tokenizer = characterTokenizer(documents.map((document) => document.text));

function smallRun(plan: Readonly<Record<string, number>>): ResolvedRun {
  const description = {
    model: { layers: 4, hidden: 16, heads: 2, context: 8 },
    plan: { globalBatch: 8, microbatch: 2, ...plan },
    data: { path: "in memory", tokenizer: "character" },
    steps: 10,
  };
  return defineRun(description, { vocabulary: tokenizer.vocabulary });
}

const runtimes: readonly (readonly [string, () => Runtime])[] = [
  ["the embedded engine", embeddedRuntime],
  ["the simulator", simulatedRuntime],
];

describe.each(runtimes)("%s", (_, runtime) => {
  describe.each([{ dp: 1 }, { dp: 2, pp: 2 }])("with %j", (plan) => {
    const run = smallRun(plan);
    const dataset = tokenize(documents, tokenizer);
    const loader = createLoader({ dataset, ...run.plan, seed: 1 });
    it.each(conformance({ runtime, run, loader }))("$name", async ({ check }) => {
      await expect(check()).resolves.toBeUndefined();
    });
  });
});
