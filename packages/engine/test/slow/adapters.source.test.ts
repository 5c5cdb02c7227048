import { expect, test } from "vitest";
import { adapted, adaptedForms } from "../adapted-run.ts";
import { worstGradient } from "../equality.ts";
import { type Degrees, trainSteps, withRuntime } from "../small-run.ts";

const [, llama, every] = adaptedForms[1]!;

test.each<Degrees>([
  { dp: 2, zero: 1 },
  { dp: 2, zero: 3 },
  { pp: 2, microbatch: 2 },
  { pp: 2, dp: 2, microbatch: 2, schedule: "zb-h1" },
  { cp: 2 },
  { recompute: "full" },
])("adapters under %o train as on one rank", async (plan) => {
  const train = (degrees: Degrees): Promise<[number[], ReadonlyMap<string, Float32Array>]> =>
    withRuntime(adapted(llama, every, degrees), async (runtime) => {
      const losses = await trainSteps(runtime, 0, 2);
      const gradients = await runtime.gradients();
      return [[...losses, ...(await trainSteps(runtime, 2, 6))], gradients];
    });
  const [[losses, gradients], [one, expected]] = [await train(plan), await train({})];
  expect(worstGradient(gradients, expected)).toBeLessThan(1e-4);
  losses.forEach((loss, step) => expect(Math.abs(loss - one[step]!)).toBeLessThan(1e-4));
  expect([...gradients.keys()].every((name) => name.includes(".lora_"))).toBe(true);
});
