import { expect, test } from "vitest";
import { mixtral, worstGradient } from "../equality.ts";
import { blockForm, pretrained, tune } from "../packed/packed-run.ts";
import type { Degrees } from "../small-run.ts";

test.each<[string, "int8" | "nf4", Degrees]>([
  ["ZeRO 3, layer by layer", "nf4", { dp: 2, zero: 3 }],
  ["ZeRO 3 on two stages", "int8", { dp: 2, pp: 2, zero: 3, microbatch: 2 }],
  ["sequence parallelism", "int8", { tp: 2, sequenceParallel: true }],
  ["full recomputation", "nf4", { recompute: "full" }],
])("a base in fewer bits under %s (%s) trains as on one rank", async (_, base, plan) => {
  const one = await tune(blockForm, base, {});
  const many = await tune(blockForm, base, plan);
  expect(worstGradient(many.gradients, one.gradients)).toBeLessThan(1e-4);
  many.losses.forEach((loss, i) => expect(Math.abs(loss - one.losses[i]!)).toBeLessThan(1e-4));
});

test("experts in fewer bits go on from a model in full, on any layout", async () => {
  const form = { ...mixtral, layers: 2, hidden: 128 };
  const experts = { ...mixtral.experts, ffn: 128, sharedFfn: 128 };
  const from = await pretrained({ ...form, experts });
  for (const base of ["int8", "nf4"] as const) {
    const one = await tune({ ...form, experts }, base, {}, from);
    for (const plan of [
      { dp: 2, ep: 2, zero: 3 },
      { dp: 2, tp: 2, ep: 2, etp: 2, sequenceParallel: true },
    ] as const) {
      const many = await tune({ ...form, experts }, base, plan, from);
      expect(Math.abs(many.start - one.start)).toBeLessThan(1e-5);
      many.losses.forEach((loss, i) => expect(Math.abs(loss - one.losses[i]!)).toBeLessThan(1e-4));
    }
  }
});
