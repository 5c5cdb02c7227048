import { decodeSafetensors } from "@trireme/checkpoint";
import { fromHuggingFace, toHuggingFace, wholeModel } from "@trireme/engine";
import { expect, test } from "vitest";
import { expectEqual, latentForm, latentLite } from "./equality.ts";
import { smallRun, takeSnapshot, trainSteps, withRuntime } from "./small-run.ts";

// A slice of the grid in test/slow/equality-grid.source.test.ts.
test("latent attention on two ranks of context parallelism trains as on one", () =>
  expectEqual({ cp: 2, recompute: "selective" }, latentLite, 10));

const request = { prompt: Int32Array.of(1, 4, 7), tokens: 6, temperature: 0, seed: 1 };

test("a snapshot of latent attention has DeepSeek's names, and goes on in another layout", async () => {
  const one = smallRun({ tp: 2, sequenceParallel: true, etp: 1, ep: 2 }, latentForm);
  const [snapshot, straight, text] = await withRuntime(one, async (runtime) => {
    await trainSteps(runtime, 0, 2);
    const generated = await runtime.generate!(request);
    return [await takeSnapshot(runtime), await trainSteps(runtime, 2, 5), generated] as const;
  });
  const { tensors } = decodeSafetensors(wholeModel(snapshot));
  const attention = tensors.filter(({ name }) => name.startsWith("h.3.attn."));
  expect(Object.fromEntries(attention.map(({ name, shape }) => [name, shape.join()]))).toEqual({
    "h.3.attn.q_a_proj.weight": "32,24",
    "h.3.attn.q_a_layernorm.weight": "24",
    "h.3.attn.q_b_proj.weight": "24,48",
    "h.3.attn.kv_a_proj_with_mqa.weight": "32,20",
    "h.3.attn.kv_a_layernorm.weight": "16",
    "h.3.attn.kv_b_proj.weight": "16,64",
    "h.3.attn.o_proj.weight": "32,32",
  });
  const file = toHuggingFace(snapshot, one.model);
  await withRuntime(smallRun({ pp: 2 }, latentForm), async (runtime) => {
    // The weights alone, in a file of Hugging Face's form.
    await runtime.restore(fromHuggingFace([file], one.model));
    expect(await runtime.generate!(request)).toEqual(text);
    expect(Buffer.compare(toHuggingFace(await takeSnapshot(runtime), one.model), file)).toBe(0);
    // All of it.
    await runtime.restore(snapshot);
    expect(await runtime.generate!(request)).toEqual(text);
    const resumed = await trainSteps(runtime, 2, 5);
    // Sums in another order, in f32.
    resumed.forEach((loss, i) => expect(loss).toBeCloseTo(straight[i]!, 4));
  });
});
