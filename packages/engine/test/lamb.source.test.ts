import { expect, test } from "vitest";
import { gpt, llama } from "./equality.ts";
import { expectSameLamb, lambRate, lambRun, trainByLamb, weightsOf } from "./lamb.ts";
import { smallBatch, takeSnapshot, withRuntime } from "./small-run.ts";

test("two steps of a run are LAMB's by its formula", async () => {
  const run = lambRun({ dp: 2, zero: 2 });
  const { beta1, beta2, epsilon, weightDecay, clip } = run.optimizer;
  const moments = new Map<string, readonly [Float64Array, Float64Array]>();
  await withRuntime(run, async (runtime) => {
    for (let step = 0; step < 2; step++) {
      const before = weightsOf(await takeSnapshot(runtime));
      const batch = smallBatch(step);
      const { gradientNorm } = await runtime.step({ step, batch, learningRate: lambRate });
      const scale = Math.min(1, clip / gradientNorm);
      const gradients = await runtime.gradients();
      const after = weightsOf(await takeSnapshot(runtime));
      expect(before.size).toBeGreaterThan(40);
      for (const [name, x] of before) {
        const g = gradients.get(name)!;
        const known = moments.get(name) ?? [new Float64Array(x.length), new Float64Array(x.length)];
        moments.set(name, known);
        const [m, v] = known;
        // Biases and gains neither decay nor adapt.
        const adapts = !/bias|ln_/.test(name);
        const way = Float64Array.from(x, (value, i) => {
          const slope = scale * g[i]!;
          m[i] = beta1 * m[i]! + (1 - beta1) * slope;
          v[i] = beta2 * v[i]! + (1 - beta2) * slope ** 2;
          const mean = m[i] / (1 - beta1 ** (step + 1));
          const size = Math.sqrt(v[i] / (1 - beta2 ** (step + 1))) + epsilon;
          return mean / size + (adapts ? weightDecay * value : 0);
        });
        const ratio = adapts ? Math.hypot(...x) / Math.hypot(...way) : 1;
        // Weights below 1, and moves of a hundredth of them, in float32.
        x.forEach((value, i) => {
          expect(
            Math.abs(after.get(name)![i]! - (value - lambRate * ratio * way[i]!)),
          ).toBeLessThan(2e-7);
        });
      }
    }
  });
});

// The other plans are in test/slow/lamb.source.test.ts.
test.each([
  ["ZeRO 3 with sequence parallelism", { dp: 2, zero: 3, tp: 2, sequenceParallel: true }, llama],
  ["tied tables on two stages, each cut over tp2", { tp: 2, pp: 2 }, gpt],
] as const)("LAMB trains as on one rank: %s", (_, plan, form) => expectSameLamb(plan, form, 12));

test("LAMB learns", async () => {
  const { losses } = await trainByLamb(lambRun({}, llama), 16);
  expect(losses.at(-1)).toBeLessThan(losses[0]! - 0.3);
});

test("LAMB has the same bits from run to run", async () => {
  const run = lambRun({ dp: 2, tp: 2, zero: 1 });
  const [a, b] = [await trainByLamb(run, 4), await trainByLamb(run, 4)];
  expect(a).toEqual(b);
});
