/**
 * What training waits for when a snapshot is taken of it: two replicas of 20 million parameters, whose
 * state of 240 MB they share out, from the request to the copies of both. Beside it a plain copy of as
 * many bytes by one thread, and what writing the same snapshot to a file store behind training takes.
 * Least times of some rounds: other work on the machine only adds to them.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedRuntime } from "@trireme/engine";
import { defineRun } from "@trireme/run";
import { SnapshotBuffer, snapshotBytes } from "@trireme/runtime";
import { fileStore } from "@trireme/runtime/node";

const rounds = 7;
const sequence = 16;
const run = defineRun({
  model: { layers: 6, hidden: 512, heads: 8, vocab: 2048, context: sequence },
  cluster: {
    cpu: { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" },
    devices: 2,
  },
  plan: { dp: 2, globalBatch: 2, sequence, precision: "fp32" },
});

interface Measured {
  /** Seconds from the request to the last copy. */
  readonly stall: number;
  /** Seconds of a plain copy of the same bytes. */
  readonly copy: number;
  /** Seconds that the store writes. */
  readonly save: number;
}

async function measure(): Promise<Measured> {
  const runtime = embeddedRuntime();
  const directory = mkdtempSync(join(tmpdir(), "trireme-snapshot-"));
  try {
    await runtime.start(run);
    const tokens = Int32Array.from({ length: 2 * (sequence + 1) }, (_, i) => (i * 7) % 2048);
    let step = 0;
    const train = async (): Promise<void> => {
      const batch = { step, tokens, rows: 2, width: sequence + 1 };
      await runtime.step({ step: step++, batch, learningRate: 1e-4 });
    };
    const buffer = new SnapshotBuffer();
    buffer.reserve(runtime.snapshotSizes!());
    const [stalls, copies]: [number[], number[]] = [[], []];
    let taken = await runtime.snapshot(buffer);
    await taken.taken;
    const from = new Uint8Array(new SharedArrayBuffer(snapshotBytes(taken))).fill(1);
    const to = new Uint8Array(new SharedArrayBuffer(from.length)).fill(2);
    for (let round = 0; round < rounds; round++) {
      await train();
      stalls.push(
        await seconds(async () => {
          taken = await runtime.snapshot(buffer);
          await taken.taken;
        }),
      );
      copies.push(await seconds(() => to.set(from)));
    }
    const save = await seconds(() => fileStore(directory).save(taken));
    return { stall: Math.min(...stalls), copy: Math.min(...copies), save };
  } finally {
    await runtime.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function seconds(what: () => unknown): Promise<number> {
  const begin = performance.now();
  await what();
  return (performance.now() - begin) / 1e3;
}

let measured: Promise<Measured> | undefined;
const once = (): Promise<Measured> => (measured ??= measure());

export const benchmarks = [
  {
    id: "engine/snapshot-stall",
    what: "time that training waits for a snapshot of 2 ranks, in plain copies of its bytes by one thread",
    unit: "copies",
    better: "lower",
    target: 1.5,
    measure: async (): Promise<number> => {
      const { stall, copy } = await once();
      return stall / copy;
    },
  },
  {
    id: "engine/snapshot-share",
    what: "time that training waits for a snapshot, of the time in which a file store writes it behind",
    unit: "fraction",
    better: "lower",
    target: 0.3,
    measure: async (): Promise<number> => {
      const { stall, save } = await once();
      return stall / save;
    },
  },
] as const;
