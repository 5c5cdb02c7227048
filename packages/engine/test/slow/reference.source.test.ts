import { expect, test } from "vitest";
import { nanoGpt, nanoGptBatch, rateOf } from "../reference/nano-gpt.ts";
import { torchAdvice, torchPython, trainByTorch } from "../reference/torch.ts";
import { takeSnapshot, withRuntime } from "../small-run.ts";

const python = torchPython();
const steps = 100;

if (python === undefined) console.log(torchAdvice);

test.skipIf(python === undefined)(
  "nanoGPT's CPU setting gives the losses and gradients of a plain PyTorch loop",
  async () => {
    const run = nanoGpt();
    await withRuntime(run, async (runtime) => {
      const torch = trainByTorch(python!, run, await takeSnapshot(runtime), steps);
      const losses: number[] = [];
      for (let step = 0; step < steps; step++) {
        const batch = nanoGptBatch(step);
        const { loss } = await runtime.step({ step, batch, learningRate: rateOf(run, step) });
        losses.push(loss);
        if (step === 0) expectGradients(await runtime.gradients(), torch.gradients);
      }
      // Rounding alone, which 100 steps of training multiply.
      losses.forEach((loss, step) =>
        expect(Math.abs(loss - torch.losses[step]!)).toBeLessThan(1e-3),
      );
      expect(losses[0]).toBeCloseTo(Math.log(run.model.vocab), 0);
      expect(losses.at(-1)).toBeLessThan(losses[0]! - 1.5);
    });
  },
);

function expectGradients(
  ours: ReadonlyMap<string, Float32Array>,
  theirs: ReadonlyMap<string, Float32Array>,
): void {
  expect([...ours.keys()].toSorted()).toEqual([...theirs.keys()].toSorted());
  const worst: [string, number][] = [];
  for (const [name, expected] of theirs) {
    const actual = ours.get(name)!;
    expect(actual.length).toBe(expected.length);
    let [difference, norm] = [0, 0];
    for (let i = 0; i < expected.length; i++) {
      difference += (actual[i]! - expected[i]!) ** 2;
      norm += expected[i]! ** 2;
    }
    worst.push([name, Math.sqrt(difference / norm)]);
  }
  // Sums of 768 rows in f32, in another order.
  expect(worst.filter(([, error]) => !(error < 1e-5))).toEqual([]);
}
