import { type TensorEntry, decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import type { ResolvedRun } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import type { AdapterTarget } from "@trireme/workload";
import { expect, test } from "vitest";
import { adapted, adaptedForms, attentionTargets, expectAdapted } from "./adapted-run.ts";
import { deepSeek, llama } from "./equality.ts";
import { smallBatch, smallRun, takeSnapshot, trainSteps, withRuntime } from "./small-run.ts";

/** Weights of a snapshot by name. */
function tensorsOf(snapshot: Snapshot): Map<string, Float32Array> {
  return new Map(
    decodeSafetensors(wholeModel(snapshot)).tensors.map(({ name, data }) => [
      name,
      new Float32Array(Uint8Array.from(data).buffer),
    ]),
  );
}

/** A file of one rank without its weights. */
function momentsOf(bytes: Uint8Array): Uint8Array {
  const { tensors } = decodeSafetensors(bytes);
  return encodeSafetensors(tensors.filter(({ name }) => name.startsWith("optimizer.")));
}

/** First column of each target in the result of its matrix of a model, see `ffn`. */
function firstColumn(run: ResolvedRun, target: AdapterTarget): number {
  const { heads, kvHeads, headDim, ffn, activation } = run.model;
  if (target === "key") return heads * headDim;
  if (target === "value") return (heads + kvHeads) * headDim;
  return target === "up" && activation === "swiglu" ? ffn : 0;
}

/** The plain model's snapshot with the products of the adapters added to its matrices. */
function merged(run: ResolvedRun, plain: Snapshot, tuned: Snapshot): Snapshot {
  const { rank } = run.model.adapter!;
  const values = tensorsOf(tuned);
  const entries = decodeSafetensors(wholeModel(plain)).tensors.map((entry): TensorEntry => {
    const whole = values.get(entry.name)!.slice();
    const [inputs = 0, outputs = 0] = entry.shape;
    const matrix = entry.name.replace(/\.weight$/, "");
    for (const target of run.model.adapter!.targets) {
      const a = values.get(`${matrix}.lora_A.${target}`);
      const b = values.get(`${matrix}.lora_B.${target}`);
      if (a === undefined || b === undefined) continue;
      const columns = b.length / rank;
      const from = firstColumn(run, target);
      for (let i = 0; i < inputs; i++) {
        for (let j = 0; j < columns; j++) {
          let sum = 0;
          for (let r = 0; r < rank; r++) sum += a[i * rank + r]! * b[r * columns + j]!;
          whole[i * outputs + from + j]! += sum;
        }
      }
    }
    return { ...entry, data: new Uint8Array(whole.buffer) };
  });
  // Whole tensors in a file of their own, and the moments as they were.
  const moments = plain.files.filter(({ name }) => name !== "index.json");
  const state = moments.map((file) => ({ ...file, bytes: momentsOf(file.bytes) }));
  const model = { name: "model.safetensors", bytes: encodeSafetensors(entries, {}) };
  return { ...plain, files: [model, ...state] };
}

test.each(adaptedForms)(
  "adapters of %s learn beside frozen weights, and merge into them",
  async (_, form, targets) => {
    const run = adapted(form, targets);
    const [before, losses, tuned, evaluated] = await withRuntime(run, async (runtime) => {
      const first = await takeSnapshot(runtime);
      const all = await trainSteps(runtime, 0, 25);
      return [
        first,
        all,
        await takeSnapshot(runtime),
        await runtime.evaluate(smallBatch(99)),
      ] as const;
    });
    const [old, now] = [tensorsOf(before), tensorsOf(tuned)];
    const changed = [...now].filter(([name, values]) => {
      const first = old.get(name)!;
      return values.some((value, i) => value !== first[i]);
    });
    // All adapters, and nothing else.
    expect(changed.map(([name]) => name)).toEqual(
      [...now.keys()].filter((name) => name.includes(".lora_")),
    );
    await withRuntime(smallRun({}, form), async (runtime) => {
      const plain = await takeSnapshot(runtime);
      // B begins at 0: the adapted model is the plain one.
      const start = await runtime.evaluate(smallBatch(0));
      expect(Math.abs(start.loss - losses[0]!)).toBeLessThan(1e-6);
      const { loss } = await runtime.evaluate(smallBatch(99));
      await runtime.restore(merged(run, plain, tuned));
      const whole = await runtime.evaluate(smallBatch(99));
      // Sums in another order, in f32.
      expect(Math.abs(whole.loss - evaluated.loss)).toBeLessThan(1e-5);
      // They have learnt.
      expect(whole.loss).toBeLessThan(loss - 0.05);
    });
  },
);

// A slice of test/slow/adapters.source.test.ts.
test.each([
  ["two tied stages of two ranks each", adaptedForms[0]![1], adaptedForms[0]![2], { tp: 2, pp: 2 }],
  ["products side by side on two ranks", adaptedForms[2]![1], adaptedForms[2]![2], { tp: 2 }],
  ["experts on two ranks", deepSeek, attentionTargets, { dp: 2, ep: 2 }],
] as const)("adapters over %s train and generate as on one rank", (_, form, targets, plan) =>
  expectAdapted(form, targets, plan),
);

test("frozen weights need no gradients and no moments", async () => {
  const form = { ...llama, hidden: 128, ffn: 512 };
  const bytesOf = (run: ResolvedRun): Promise<number> =>
    withRuntime(run, async (runtime) => {
      await trainSteps(runtime, 0, 2);
      return (await runtime.memory())[0]!;
    });
  const full = await bytesOf(smallRun({ microbatch: 1 }, form));
  const tuned = { ...form, adapter: { rank: 2, targets: ["query", "value"] } } as const;
  const low = await bytesOf(smallRun({ microbatch: 1 }, tuned));
  // Of 16 bytes a parameter 12 are saved, of about a million parameters; activations stay.
  expect(full - low).toBeGreaterThan(10e6);
  // In BF16 two more, or 1.9 MB, but for a matrix of 0.5 MB that is written out while it is used.
  const half = await bytesOf(smallRun({ microbatch: 1, precision: "bf16" }, tuned));
  expect(low - half).toBeGreaterThan(1.2e6);
});
