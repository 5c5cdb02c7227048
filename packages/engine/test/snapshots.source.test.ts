import { decodeSafetensors, parseCheckpointIndex } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import { type Snapshot, SnapshotBuffer, snapshotBytes } from "@trireme/runtime";
import type { ModelOptions } from "@trireme/workload";
import { expect, test } from "vitest";
import { deepSeek, gpt, llama, switchForm } from "./equality.ts";
import {
  type Degrees,
  learningRate,
  smallBatch,
  smallRun,
  takeSnapshot,
  trainSteps,
  withRuntime,
} from "./small-run.ts";

/** A snapshot after four steps, and the losses of the four that follow. */
function saved(plan: Degrees, form: Partial<ModelOptions>): Promise<readonly [Snapshot, number[]]> {
  return withRuntime(smallRun(plan, form), async (runtime) => {
    await trainSteps(runtime, 0, 4);
    return [await takeSnapshot(runtime), await trainSteps(runtime, 4, 8)] as const;
  });
}

test("a run restored from a snapshot goes on bit for bit", async () => {
  const plan = { dp: 2, pp: 2 };
  const [snapshot, straight] = await saved(plan, gpt);
  expect(snapshot.step).toBe(4);
  const resumed = await withRuntime(smallRun(plan), async (runtime) => {
    await runtime.restore(snapshot);
    expect((await takeSnapshot(runtime)).files).toEqual(snapshot.files);
    return trainSteps(runtime, 4, 8);
  });
  expect(resumed).toEqual(straight);
});

test.each([
  ["pp4 goes on in dp2", { pp: 4 }, { dp: 2, microbatch: 2 }, gpt],
  ["ZeRO 1 goes on in tp2", { dp: 2, zero: 1 }, { tp: 2, sequenceParallel: true }, llama],
  ["tp2 in pp2 goes on in ZeRO 3", { tp: 2, pp: 2 }, { dp: 4, zero: 3 }, llama],
  ["experts shared out go on whole", { dp: 2, etp: 2 }, { dp: 2, ep: 2, zero: 1 }, switchForm],
  ["experts of two ranks go on in ZeRO 2", { dp: 2, ep: 2 }, { dp: 2, zero: 2 }, deepSeek],
] as const)("a snapshot of %s", async (_, before, after, form) => {
  const [snapshot, straight] = await saved(before, form);
  const resumed = await withRuntime(smallRun(after, form), async (runtime) => {
    await runtime.restore(snapshot);
    expect(wholeModel(await takeSnapshot(runtime))).toEqual(wholeModel(snapshot));
    return trainSteps(runtime, 4, 8);
  });
  // Sums in another order, in f32.
  resumed.forEach((loss, i) => expect(loss).toBeCloseTo(straight[i]!, 4));
});

test("a snapshot holds every tensor of the model once, under GPT-2's names", async () => {
  const [snapshot] = await saved({ dp: 2, pp: 2 }, gpt);
  const { tensors } = decodeSafetensors(wholeModel(snapshot));
  const names = tensors.map(({ name }) => name);
  expect(names).toContain("wte.weight");
  expect(names).toContain("h.3.mlp.c_proj.bias");
  expect(names).not.toContain("lm_head.weight");
  const attention = tensors.find(({ name }) => name === "h.0.attn.c_attn.weight");
  expect(attention?.shape).toEqual([32, 96]);
  // Reading the index refuses tensors with a hole or an overlap.
  const index = parseCheckpointIndex(snapshot.files.find((f) => f.name === "index.json")!.bytes);
  expect(index).toHaveLength(3 * names.length);
});

test("ranks that hold the same share out what is stored", async () => {
  for (const zero of [0, 2] as const) {
    const [{ files }] = await saved({ dp: 4, zero }, gpt);
    const sizes = files.flatMap(({ name, bytes }) => (name === "index.json" ? [] : bytes.length));
    expect(sizes).toHaveLength(4);
    // Headers differ by the tensors that a share has a part of.
    expect(Math.max(...sizes)).toBeLessThan(1.2 * Math.min(...sizes));
  }
});

test("steps that follow a snapshot at once do not change it, and its memory is kept", async () => {
  const run = smallRun({ dp: 2, zero: 1 });
  await withRuntime(run, async (runtime) => {
    const buffer = new SnapshotBuffer();
    buffer.reserve(runtime.snapshotSizes!());
    await trainSteps(runtime, 0, 2);
    const waited = await takeSnapshot(runtime);
    const taken = await runtime.snapshot(buffer);
    const next = runtime.step({ step: 2, batch: smallBatch(2), learningRate });
    await taken.taken;
    expect(taken.files).toEqual(waited.files);
    await next;
    expect(taken.files).toEqual(waited.files);
    expect(snapshotBytes(taken)).toBe(
      runtime.snapshotSizes!().reduce((sum, { size }) => sum + size, 0),
    );
    // In memory of the buffer, so that nothing is allocated.
    const memory = taken.files.map(({ name, bytes }) => [name, bytes.buffer] as const);
    const again = await runtime.snapshot(buffer);
    await again.taken;
    const same = new Map(again.files.map(({ name, bytes }) => [name, bytes.buffer]));
    for (const [name, bytes] of memory) expect(same.get(name)).toBe(bytes);
  });
});

test("files that lack a tensor, or have one of another shape, are refused by name", async () => {
  const [snapshot] = await saved({}, gpt);
  await withRuntime(smallRun({}, { layers: 5 }), async (runtime) => {
    await expect(runtime.restore(snapshot)).rejects.toThrow("lacks h.4.attn");
  });
  await withRuntime(smallRun({}, { hidden: 64 }), async (runtime) => {
    await expect(runtime.restore(snapshot)).rejects.toThrow("in the checkpoint, but F32 [");
    const files = snapshot.files.filter(({ name }) => name === "index.json");
    await expect(runtime.restore({ step: 1, files })).rejects.toThrow("in rank-00000.safetensors");
  });
});
