import { expect, test } from "vitest";
import { type Fp8Scaling, embeddedRuntime } from "@trireme/engine";
import { gpt, train } from "./equality.ts";
import { type Degrees, smallRun, trainSteps } from "./small-run.ts";

const steps = 20;

async function losses(plan: Degrees, fp8Scaling: Fp8Scaling = "current"): Promise<number[]> {
  const runtime = embeddedRuntime({ fp8Scaling });
  try {
    await runtime.start(smallRun(plan));
    return await trainSteps(runtime, 0, steps);
  } finally {
    await runtime.stop();
  }
}

test("BF16 and FP8 products and BF16 gradients train as float32 does, within their rounding", async () => {
  const exact = (await train(smallRun({}, gpt), steps)).losses;
  // Bounds: a mean loss near 3 with operands off by up to 2^-8 and 2^-4 of themselves.
  for (const [plan, scaling, bound] of [
    [{ precision: "bf16" }, "current", 0.01],
    [{ matrixPrecision: "fp8" }, "current", 0.05],
    [{ matrixPrecision: "fp8" }, "delayed", 0.05],
    [{ matrixPrecision: "fp8", dp: 2 }, "block", 0.05],
    [{ dp: 2, zero: 1, gradientPrecision: "bf16", overlapDataParallel: true }, "current", 0.01],
  ] as const) {
    const rounded = await losses(plan, scaling);
    expect(rounded).not.toEqual(exact);
    rounded.forEach((loss, step) => expect(Math.abs(loss - exact[step]!)).toBeLessThan(bound));
  }
});
