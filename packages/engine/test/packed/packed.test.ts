import { decodeSafetensors } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import type { Adapter } from "@trireme/workload";
import { expect, test } from "vitest";
import { worstGradient } from "../equality.ts";
import { smallRun, takeSnapshot, trainSteps, withRuntime } from "../small-run.ts";
import { blockForm, pretrained, tune } from "./packed-run.ts";

test("a base in 8 and in 4 bits fine-tunes as in full, within its rounding", async () => {
  const from = await pretrained(blockForm);
  const full = await tune(blockForm, "full", {}, from);
  // Weights off by up to 1 part in 254, and 1 in 7, of the greatest of their row or block.
  for (const [base, bound] of [
    ["int8", 0.005],
    ["nf4", 0.1],
  ] as const) {
    const packed = await tune(blockForm, base, {}, from);
    expect(packed.start).not.toBe(full.start);
    expect(Math.abs(packed.start - full.start)).toBeLessThan(bound);
    packed.losses.forEach((loss, i) =>
      expect(Math.abs(loss - full.losses[i]!)).toBeLessThan(bound),
    );
    // It learns all the same.
    expect(packed.losses.at(-1)).toBeLessThan(packed.losses[0]! - 0.02);
    expect([...packed.gradients.keys()].every((name) => name.includes(".lora_"))).toBe(true);
  }
});

test("a base in fewer bits takes fewer bytes, and lends a matrix at a time", async () => {
  const form = { ...blockForm, layers: 6, hidden: 256, ffn: 512 };
  const peak = (base: Adapter["base"]): Promise<number> => {
    const adapter = { rank: 4, targets: ["query"], base } as const;
    return withRuntime(smallRun({ microbatch: 1 }, { ...form, adapter }), async (runtime) => {
      await trainSteps(runtime, 0, 1);
      return (await runtime.memory())[0]!;
    });
  };
  const full = await peak("full");
  const matrices = 6 * (3 * 256 * 256 + 3 * 256 * 512);
  const largest = 256 * 1024 * 4;
  for (const [base, each] of [
    ["int8", 1 + 4 / 256],
    ["nf4", 0.5 + 1 / 64 + 4 / 64 / 256],
  ] as const) {
    const saved = full - (await peak(base));
    expect(saved).toBeGreaterThan(matrices * (4 - each) - 1.5 * largest);
    expect(saved).toBeLessThan(matrices * (4 - each));
  }
});

test("a base in 4 bits is the same over tensor-parallel stages, stored once and resumed bit for bit", async () => {
  const plan = { tp: 2, pp: 2, microbatch: 2 };
  const one = await tune(blockForm, "nf4", {});
  const many = await tune(blockForm, "nf4", plan);
  expect(worstGradient(many.gradients, one.gradients)).toBeLessThan(1e-4);
  many.losses.forEach((loss, i) => expect(Math.abs(loss - one.losses[i]!)).toBeLessThan(1e-4));
  const [stored, same] = [many, one].map(({ snapshot }) =>
    decodeSafetensors(wholeModel(snapshot)).tensors.filter(({ dtype }) => dtype === "U8"),
  );
  expect(stored!.map(({ name }) => name)).toContain("h.1.mlp.c_proj.weight");
  expect(stored).toEqual(same);
  const adapter = { rank: 4, targets: ["query", "key", "value", "output"], base: "nf4" } as const;
  const run = smallRun(plan, { ...blockForm, adapter });
  const straight = await withRuntime(run, async (runtime) => {
    await runtime.restore(many.snapshot);
    await trainSteps(runtime, 8, 9);
    return [await takeSnapshot(runtime), await trainSteps(runtime, 9, 11)] as const;
  });
  const resumed = await withRuntime(run, async (runtime) => {
    await runtime.restore(straight[0]);
    expect((await takeSnapshot(runtime)).files).toEqual(straight[0].files);
    return trainSteps(runtime, 9, 11);
  });
  expect(resumed).toEqual(straight[1]);
});

test("blocks that ranks would cut are refused, and so is a base without adapters after a step", async () => {
  const narrow = { ...blockForm, ffn: 96 };
  await expect(tune(narrow, "nf4", { tp: 2 })).rejects.toThrow(
    "h.0.mlp.c_proj.weight has 48 of 96 inputs on a rank, which are not whole blocks of 64; use adapter.base int8",
  );
  const from = { ...(await pretrained(blockForm, 1)), step: 1 };
  await expect(tune(blockForm, "int8", {}, from)).rejects.toThrow(
    "lacks adapters, which begin anew",
  );
});
