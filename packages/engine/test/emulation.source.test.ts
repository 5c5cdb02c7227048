/** Some ranks are run, and the others' messages come from a trace of a full run, or from their code alone. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type EmbeddedRuntimeOptions, embeddedRuntime } from "@trireme/engine";
import { expectAlike, expectKnownAlike, steps, trainTold } from "./emulation.ts";
import { gpt } from "./equality.ts";
import { smallBatch, smallRun, trainSteps } from "./small-run.ts";

// More plans are in test/slow/emulation.source.test.ts.
test("ranks alone do what they did among all, bit for bit", () =>
  expectAlike({ dp: 2, pp: 2, schedule: "zb-h1" }, gpt, [[3], [0, 2]]));

test("a trace in files, of what one rank gets, paced as it was", async () => {
  const directory = mkdtempSync(join(tmpdir(), "trireme-"));
  try {
    const plan = { dp: 2, zero: 2 } as const;
    const full = await trainTold(plan, gpt, { record: { directory, ranks: [1] } });
    const some = await trainTold(plan, gpt, {
      emulate: { ranks: [1], trace: directory, paced: true },
    });
    expect(some.losses).toEqual(full.losses);
    expectKnownAlike(some.gradients, full.gradients);
    await expect(
      trainTold(plan, gpt, { emulate: { ranks: [0], trace: directory } }),
    ).rejects.toThrow(/^rank 0: \S+ 1 needs what rank 1 gave, which the trace did not keep/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a trace of another run is refused by rank, operation and number", async () => {
  const plan = { pp: 2 } as const;
  const { trace } = await trainTold(plan, gpt, { record: {} });
  const emulate = { ranks: [1], trace: trace! };
  await expect(trainTold(plan, gpt, { emulate }, 8)).rejects.toThrow(
    /^rank 1: \S+ 1 .*gives other numbers than the trace, which is of seed 7/,
  );
  await expect(trainTold({ ...plan, schedule: "gpipe" }, gpt, { emulate })).rejects.toThrow(
    /^rank 1: \S+ \d.* in the trace/,
  );
  await expect(trainTold({ ...plan, microbatch: 2 }, gpt, { emulate })).rejects.toThrow(
    /^rank \d: \S+ 1 .*of 1024 f32 among ranks .* is .* 1 .*of 512 f32/,
  );
  await expect(trainTold({ pp: 4 }, gpt, { emulate })).rejects.toThrow(
    "the trace is of 2 ranks, the plan has 4",
  );
  const runtime = embeddedRuntime({ emulate: { ranks: [1], trace: trace! } });
  await runtime.start(smallRun(plan));
  await trainSteps(runtime, 0, steps);
  await expect(runtime.snapshot()).rejects.toThrow("snapshot needs all ranks, but only 1 are run");
  await expect(trainSteps(runtime, steps, steps + 1)).rejects.toThrow(
    "rank 1: turn 2 of the trace is evaluate, not train",
  );
  await runtime.stop();
});

test("what cannot be emulated is refused", async () => {
  const run = smallRun({ dp: 2 });
  const started = (options: EmbeddedRuntimeOptions): Promise<void> =>
    embeddedRuntime(options).start(run);
  await expect(started({ emulate: { ranks: [0] } })).rejects.toThrow("give a trace, or rehearse");
  const rehearse = { F: 0, I: 0, W: 0 };
  await expect(started({ rehearse, emulate: { ranks: [2] } })).rejects.toThrow("ranks has 2");
  await expect(started({ rehearse, emulate: { ranks: [] } })).rejects.toThrow("ranks is empty");
  const recording = embeddedRuntime({ record: {} });
  await recording.start(run);
  const request = { prompt: Int32Array.of(1), tokens: 1, temperature: 0, seed: 0 };
  await expect(recording.generate!(request)).rejects.toThrow("generate is not recorded");
  await recording.stop();
  await expect(started({ record: {}, memoryCopies: true })).rejects.toThrow(
    "excludes memoryCopies",
  );
  await expect(started({ emulate: { ranks: [0], trace: "/nowhere" } })).rejects.toThrow(
    "/nowhere has no trace.json",
  );
});

test("a rank that is run and stalls does not keep the others waiting", async () => {
  const rehearse = { F: 2, I: 0, W: 0 };
  const runtime = embeddedRuntime({ deadline: 0.5, rehearse, emulate: { ranks: [1] } });
  await runtime.start(smallRun({ pp: 2 }));
  const step = runtime.step({ step: 0, batch: smallBatch(0), learningRate: 0 });
  await expect(step).rejects.toThrow(/rank 1: receive 1 from 0 was not over in 0.5 s/);
});
