import { spans } from "@trireme/timeline";
import { embeddedRuntime } from "@trireme/engine";
import { expect, test } from "vitest";
import { gpt, llama } from "./equality.ts";
import { expectSameBits } from "./offload.ts";
import {
  type Degrees,
  learningRate,
  smallBatch,
  smallRun,
  trainSteps,
  withRuntime,
} from "./small-run.ts";

test.each([
  ["ZeRO 1 over two stages", { dp: 2, pp: 2, zero: 1 }, gpt],
  ["BF16 and ZeRO 3", { dp: 2, zero: 3, precision: "bf16" }, llama],
] as const)("states on the host, %s: the same bits, snapshots among them", (_, plan, form) =>
  expectSameBits(plan, form),
);

test.each([
  // Two moments of 4 bytes each.
  ["fp32", 8],
  // And the masters: the rank keeps working weights only.
  ["bf16", 12],
] as const)(
  "a rank's own memory has no room for states that are on the host: %s",
  async (precision, bytes) => {
    const form = { ...llama, hidden: 128, ffn: 512 };
    const bytesOf = (degrees: Degrees): Promise<number> =>
      withRuntime(smallRun({ microbatch: 1, precision, ...degrees }, form), async (runtime) => {
        await trainSteps(runtime, 0, 2);
        return (await runtime.memory())[0]!;
      });
    const saved = (await bytesOf({})) - (await bytesOf({ offload: "optimizer" }));
    // Four layers of four matrices of attention (keys and values of half the heads) and three of 128 by
    // 512, and the two tables.
    const parameters = 4 * (3 * 128 * 128 + 3 * 128 * 512) + 2 * 31 * 128;
    expect(saved).toBeGreaterThan(bytes * parameters);
    expect(saved).toBeLessThan(bytes * parameters * 1.02);
  },
);

test("the timeline has the copies, and the update between them on the host", async () => {
  const runtime = embeddedRuntime();
  try {
    const run = smallRun({ dp: 2, zero: 2, offload: "optimizer" });
    await runtime.start(run);
    const { timeline } = await runtime.step({ step: 0, batch: smallBatch(0), learningRate });
    const all = [...spans(timeline)].filter(({ rank }) => rank === 1);
    const [out, update, back] = ["gradients-to-host", "optimizer", "weights-to-device"].map(
      (action) => all.filter((span) => span.action === action),
    );
    expect([out!.length, update!.length, back!.length]).toEqual([1, 1, 1]);
    expect([out, update, back].map((some) => some![0]!.lane)).toEqual(["copy", "host", "copy"]);
    expect(out![0]!.end).toBeLessThanOrEqual(update![0]!.start);
    expect(update![0]!.end).toBeLessThanOrEqual(back![0]!.start);
    // A rank's half of all parameters, in whole cache lines.
    const { bytes } = out![0]!;
    expect(back![0]!.bytes).toBe(bytes);
    const parameters = 4 * (12 * 32 * 32 + 13 * 32) + (31 + 16) * 32 + 2 * 32;
    expect(bytes).toBeGreaterThanOrEqual((4 * parameters) / 2);
    expect(bytes).toBeLessThan(((4 * parameters) / 2) * 1.02);
  } finally {
    await runtime.stop();
  }
});
