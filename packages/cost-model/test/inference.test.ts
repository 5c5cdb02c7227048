import {
  type InferenceCost,
  type InferenceOptions,
  acceptedTokens,
  inferenceCost,
} from "@trireme/cost-model";
import { defineCluster } from "@trireme/topology";
import { type Adapter, defineModel, model, parameters } from "@trireme/workload";
import fc from "fast-check";
import { expect, test } from "vitest";

const a100 = defineCluster({ host: "dgx-a100-80", hosts: 1 });
const h100 = defineCluster({ host: "dgx-h100", hosts: 2 });
const base: InferenceOptions = {
  model: model("llama2-7b"),
  cluster: a100,
  batch: 1,
  prompt: 512,
  generated: 256,
};

function cost(o: Partial<InferenceOptions> = {}): InferenceCost {
  const c = inferenceCost({ ...base, ...o });
  if (!c.ok) throw new Error(c.reason);
  return c;
}

test("decoding one sequence reads every weight once a token, prefill computes", () => {
  const { decode, prefill } = cost();
  // 13.5 GB of 2.04 TB/s at 82 %: 8.1 ms is the floor; norms, gaps and the cache add less than a fifth.
  const floor = (2 * 6.74e9) / (2.039e12 * 0.82);
  expect(decode.secondsPerStep).toBeGreaterThan(floor);
  expect(decode.secondsPerStep).toBeLessThan(1.25 * floor);
  // Twice the parameters a token; launches keep short prompts from the peak.
  const mfu = (2 * 6.74e9 * 512) / (prefill.seconds * 312e12);
  expect(mfu).toBeGreaterThan(0.4);
  expect(mfu).toBeLessThan(1);
});

test("the cache holds keys and values of every token, and grouped queries and latents shrink it", () => {
  // 32 layers of two times 4096 numbers in 16 bits: half a MiB a token.
  expect(cost().memory.cache).toBe(2 * 32 * 4096 * 2 * (512 + 256));
  const perToken = (name: string, ep = 1): number =>
    inferenceCost({ ...base, model: model(name), cluster: h100, ep }).memory.cache / 768;
  // LLaMA 3 8B: 8 of 32 heads. DeepSeek-V3: 61 layers of 512 + 64 numbers (arXiv 2405.04434, Table 1).
  expect(perToken("llama3-8b")).toBe(2 * 32 * 1024 * 2);
  expect(perToken("deepseek-v3", 16)).toBe(61 * 576 * 2);
});

test("SnapKV: a cache cut to 1/8 of a 16K prompt takes 8 times less, and decoding several sequences is 2 to 4.5 times as fast", () => {
  const long = { prompt: 16_384, generated: 64, batch: 4 } as const;
  const whole = cost(long);
  const cut = cost({ ...long, cacheBudget: 2048 });
  // Published: 8.2 times less memory for 16K prompts, and 3.6 times the speed (arXiv 2404.14469, abstract); how many
  // sequences ran at once is not said, and weights are read all the same.
  expect(whole.memory.cache / cut.memory.cache).toBeGreaterThan(7);
  expect(whole.memory.cache / cut.memory.cache).toBeLessThan(8.5);
  const faster =
    whole.decode.secondsPerStep / cost({ ...long, cacheBudget: 1024 }).decode.secondsPerStep;
  expect(faster).toBeGreaterThan(2);
  expect(faster).toBeLessThan(4.5);
  expect(cut.prefill.seconds).toBe(whole.prefill.seconds);
});

test("380,000 tokens of context fit on one A100 with a compressed cache only", () => {
  const long = { ...base, prompt: 380_000, generated: 64 };
  expect(inferenceCost(long)).toMatchObject({
    ok: false,
    reason: expect.stringContaining("cache"),
  });
  expect(inferenceCost({ ...long, cacheBudget: 1024 }).ok).toBe(true);
});

test("Medusa's heads: 2.2 to 3.6 times as fast with 2.5 to 4 tokens a step, and less than the tokens", () => {
  const alone = cost().decode.tokensPerSecond;
  // Published for Vicuna 7B and 13B: 2.2 (Medusa-1) and 2.3 to 3.6 (Medusa-2) (arXiv 2401.10774, abstract).
  for (const accepted of [2.7, 3.5, 4.2]) {
    const speculation = { candidates: 64, depth: 4, accepted };
    const faster = cost({ speculation }).decode.tokensPerSecond / alone;
    expect(faster).toBeGreaterThan(2);
    expect(faster).toBeLessThan(3.8);
    expect(faster).toBeLessThan(accepted);
  }
});

test("a small draft model that guesses well helps, one that guesses badly costs", () => {
  const alone = cost({ model: model("llama2-70b"), cluster: h100, tp: 8 });
  const guess = (acceptance: number): InferenceCost =>
    cost({
      model: model("llama2-70b"),
      cluster: h100,
      tp: 8,
      speculation: { candidates: 4, acceptance, draft: model("tinyllama-1.1b") },
    });
  expect(guess(0.8).decode.tokensPerSecond).toBeGreaterThan(alone.decode.tokensPerSecond);
  expect(guess(0.05).decode.tokensPerSecond).toBeLessThan(alone.decode.tokensPerSecond);
});

test("expected tokens of a step follow the chain of guesses", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 0.99, noNaN: true }),
      fc.integer({ min: 1, max: 12 }),
      (acceptance, candidates) => {
        let expected = 0;
        for (let n = 0; n <= candidates; n++) expected += acceptance ** n;
        expect(acceptedTokens({ candidates, acceptance })).toBeCloseTo(expected, 9);
      },
    ),
  );
  expect(acceptedTokens({ candidates: 5, acceptance: 1 })).toBe(6);
});

test("experts: few sequences reach few of them, and are served from their weights alone", () => {
  const mixtral = { model: model("mixtral-8x7b"), cluster: h100, ep: 4 } as const;
  const one = cost(mixtral).decode;
  const many = cost({ ...mixtral, batch: 64 }).decode;
  expect(many.secondsPerStep).toBeGreaterThan(one.secondsPerStep);
  // Sixty-four times the sequences cost far less than that: weights are shared.
  expect(many.tokensPerSecond).toBeGreaterThan(15 * one.tokensPerSecond);
});

test("a model is served with its frozen base as it is kept, and adapters in training precision", () => {
  const weights = (kept: Adapter["base"], o: Partial<InferenceOptions> = {}): number => {
    const tuned = defineModel({ ...model("llama2-7b"), adapter: { rank: 16, base: kept } });
    return cost({ model: tuned, ...o }).memory.weights;
  };
  const { layers } = parameters(model("llama2-7b"));
  // The final norm, a millionth, counts among the frozen matrices.
  expect((weights("full") - weights("nf4")) / layers).toBeCloseTo(2 - 0.5 - 1 / 64, 5);
  expect((weights("full") - weights("int8")) / layers).toBeCloseTo(1, 5);
  const eight = { cluster: h100, matrixPrecision: "fp8" } as const;
  expect(weights("full", eight)).toBe(weights("fp8", eight));
});

test("each option moves time or memory the way it should", () => {
  const plain = cost({ batch: 8, prompt: 4096 });
  const changed = (o: Partial<InferenceOptions>): InferenceCost =>
    cost({ batch: 8, prompt: 4096, ...o });
  expect(changed({ tp: 4 }).decode.secondsPerStep).toBeLessThan(plain.decode.secondsPerStep);
  expect(changed({ tp: 4 }).decode.tensorParallel).toBeGreaterThan(0);
  expect(changed({ cacheElement: 1 }).memory.cache).toBe(plain.memory.cache / 2);
  expect(changed({ cacheElement: 1 }).decode.secondsPerStep).toBeLessThan(
    plain.decode.secondsPerStep,
  );
  expect(changed({ graphs: false }).decode.secondsPerStep).toBeGreaterThan(
    plain.decode.secondsPerStep,
  );
  expect(changed({ precision: "fp32" }).memory.weights).toBe(2 * plain.memory.weights);
  const on = { cluster: h100, batch: 8, prompt: 4096 } as const;
  expect(cost({ ...on, matrixPrecision: "fp8" }).memory.weights).toBeLessThan(
    0.6 * cost(on).memory.weights,
  );
  expect(cost({ ...on, matrixPrecision: "fp8" }).prefill.seconds).toBeLessThan(
    cost(on).prefill.seconds,
  );
  expect(changed({ generated: 512 }).decode.steps).toBe(511);
  const slow = { operator: (): number => 1 };
  expect(changed({ pricer: slow }).decode.secondsPerStep).toBeGreaterThan(32);
});

test.each([
  [{ batch: 0 }, "batch 0 must be an integer from 1 up"],
  [{ prompt: 1.5 }, "prompt 1.5"],
  [{ cacheBudget: 0 }, "cacheBudget 0"],
  [{ tp: 16 }, "tp(16) x ep(1) = 16 devices, but the cluster has 8"],
  [{ model: model("mixtral-8x7b"), tp: 2 }, "experts are spread by ep, not by tp 2; use ep 2"],
  [{ speculation: { candidates: 0, acceptance: 0.5 } }, "candidates 0"],
  [{ speculation: { candidates: 4 } }, "give acceptance"],
  [{ speculation: { candidates: 4, acceptance: 2 } }, "acceptance 2 must be in [0, 1]"],
  [{ speculation: { candidates: 4, accepted: 6 } }, "must lie between 1 and depth + 1 = 5"],
  [{ speculation: { candidates: 4, depth: 5, accepted: 2 } }, "depth 5 is more than"],
  [{ speculation: { candidates: 4, acceptance: 0.5, accepted: 2 } }, "not both"],
  [{ precision: "fp32" as const, matrixPrecision: "fp8" as const }, "no fp8 arithmetic"],
])("%j is refused with the rule", (o, reason) => {
  expect(() => inferenceCost({ ...base, ...o })).toThrow(reason);
});
