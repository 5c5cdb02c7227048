import { decodeSafetensors } from "@trireme/checkpoint";
import { expect, test } from "vitest";
import { type EmbeddedRuntime, embeddedRuntime, wholeModel } from "@trireme/engine";
import type { Fp8Scaling, ResolvedRun } from "@trireme/run";
import { gpt, mixtral, train } from "./equality.ts";
import { type Degrees, smallBatch, smallRun, takeSnapshot, trainSteps } from "./small-run.ts";

const steps = 20;

function scaled(run: ResolvedRun, fp8Scaling: Fp8Scaling): ResolvedRun {
  return { ...run, engine: { ...run.engine, fp8Scaling } };
}

async function losses(plan: Degrees, fp8Scaling: Fp8Scaling = "current"): Promise<number[]> {
  const runtime = embeddedRuntime();
  try {
    await runtime.start(scaled(smallRun(plan), fp8Scaling));
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

test("a run in BF16 is that of one rank within its rounding, and the same bits each time", async () => {
  const one = await losses({ precision: "bf16" });
  const plan = { precision: "bf16", pp: 2, dp: 2, zero: 3, schedule: "zb-h1" } as const;
  const many = await losses(plan);
  // Sums in another order are rounded to other neighbours, 2^-8 apart, in every activation.
  many.forEach((loss, step) => expect(Math.abs(loss - one[step]!)).toBeLessThan(0.01));
  expect(await losses(plan)).toEqual(many);
});

test("delayed scales are the same under every plan, and a resumed run goes on with them bit for bit", async () => {
  const start = async (plan: Degrees): Promise<EmbeddedRuntime> => {
    const runtime = embeddedRuntime();
    await runtime.start(scaled(smallRun({ matrixPrecision: "fp8", ...plan }, mixtral), "delayed"));
    return runtime;
  };
  const plan = { dp: 2, ep: 2, zero: 1 } as const;
  const many = await start(plan);
  await trainSteps(many, 0, 4);
  const snapshot = await takeSnapshot(many);
  // An evaluation sees other operands, and leaves the scales alone.
  await many.evaluate(smallBatch(99));
  const straight = await trainSteps(many, 4, 8);
  await many.stop();
  const resumed = await start(plan);
  await resumed.restore(snapshot);
  expect(await trainSteps(resumed, 4, 8)).toEqual(straight);
  await resumed.stop();
  const elsewhere = await start({ tp: 2, sequenceParallel: true });
  await elsewhere.restore(snapshot);
  const others = await trainSteps(elsewhere, 4, 8);
  await elsewhere.stop();
  // With scales of their own, operands would be rounded to other numbers.
  others.forEach((loss, i) => expect(Math.abs(loss - straight[i]!)).toBeLessThan(2e-3));
  const { tensors } = decodeSafetensors(wholeModel(snapshot));
  const maxima = tensors.filter(({ name }) => name.endsWith(".amax"));
  // Two of attention and two of each of four experts and the shared one, in four layers.
  expect(maxima).toHaveLength(4 * 12);
  for (const { data } of maxima) {
    const history = new Float32Array(Uint8Array.from(data).buffer);
    for (let role = 0; role < 3; role++) {
      // Four steps are known, the newest first.
      const row = history.subarray(role * 16, role * 16 + 16);
      expect([...row].map((x) => x > 0)).toEqual(Array.from(row, (_, i) => i < 4));
    }
  }
});
