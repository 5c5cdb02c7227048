import { expect, test } from "vitest";
import { type CorruptionOptions, type EmbeddedRuntime, embeddedRuntime } from "@trireme/engine";
import type { CorruptionTarget } from "@trireme/fault-tolerance";
import { smallRun, trainSteps, withRuntime } from "./small-run.ts";

const run = smallRun({ dp: 2 }, { layers: 1 });

/** Rank 1 corrupts about one value of the targets in every step. */
function striking(...targets: CorruptionTarget[]): NonNullable<CorruptionOptions["inject"]> {
  return {
    seed: 5,
    targets,
    model: { kind: "flip", bits: "exponent" },
    rate: { per: "flop", value: 1 },
    persistence: "transient",
    devices: [1],
  };
}

async function corrupted<T>(
  corruption: CorruptionOptions,
  use: (runtime: EmbeddedRuntime) => Promise<T>,
): Promise<T> {
  const runtime = embeddedRuntime({ corruption });
  try {
    await runtime.start(run);
    return await use(runtime);
  } finally {
    await runtime.stop();
  }
}

test("a corrupted product goes unseen without checks, and ends the step with them", async () => {
  const clean = await withRuntime(run, (runtime) => trainSteps(runtime, 0, 2));
  const inject = striking("gemm-output");
  const silent = await corrupted({ inject }, async (runtime) => {
    const losses = await trainSteps(runtime, 0, 2);
    expect(runtime.strikes[0]).toBe(0);
    expect(runtime.strikes[1]).toBeGreaterThan(0);
    return losses;
  });
  expect(silent).not.toEqual(clean);
  const seen = corrupted({ inject, detect: ["checksum"] }, (runtime) => trainSteps(runtime, 0, 2));
  await expect(seen).rejects.toThrow(
    /^rank 1: the product with h\.0\.\S+ is wrong by its checksums/,
  );
});

test("checks find nothing where nothing is wrong, and change no bit", async () => {
  const clean = await withRuntime(run, (runtime) => trainSteps(runtime, 0, 3));
  const checked = await corrupted({ detect: ["checksum", "finite"] }, (runtime) =>
    trainSteps(runtime, 0, 3),
  );
  expect(checked).toEqual(clean);
});

test("weights, moments and gradients are struck too, and a gradient that is no number is refused", async () => {
  const inject = striking("weight", "optimizer-state");
  await corrupted({ inject }, async (runtime) => {
    await trainSteps(runtime, 0, 1);
    // One flip each of weights and both moments of every bucket.
    expect(runtime.strikes[1]).toBeGreaterThanOrEqual(3);
  });
  // A weight of 1e38 soon gives infinities, on the rank that holds it, before they are shared.
  const refused = corrupted({ inject: striking("weight"), detect: ["finite"] }, (runtime) =>
    trainSteps(runtime, 0, 20),
  );
  await expect(refused).rejects.toThrow(/^rank 1: the gradient of \S+ holds/);
});
