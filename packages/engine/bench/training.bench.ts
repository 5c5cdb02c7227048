/**
 * Training on nanoGPT's CPU setting (4 layers, 4 heads, 128 wide, 64 tokens, 12 samples a step): one
 * rank, and two data-parallel ranks on two cores.
 */
import { createRng } from "@trireme/core";
import { embeddedRuntime } from "@trireme/engine";
import { defineRun } from "@trireme/run";

const vocab = 65;
const [samples, sequence] = [12, 64];
const steps = 24;

/** Tokens trained on in a second, by the median step of a run on `dp` ranks. */
async function tokensPerSecond(dp: number): Promise<number> {
  const cpu = { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" };
  const run = defineRun({
    model: { layers: 4, hidden: 128, heads: 4, vocab, context: sequence },
    cluster: { cpu, devices: dp },
    plan: { dp, globalBatch: samples, microbatch: samples / dp, precision: "fp32" },
  });
  const rng = createRng(1);
  const tokens = Int32Array.from({ length: samples * (sequence + 1) }, () => rng.integer(vocab));
  const runtime = embeddedRuntime();
  await runtime.start(run);
  const seconds: number[] = [];
  for (let step = 0; step < steps; step++) {
    const batch = { step, tokens, rows: samples, width: sequence + 1 };
    seconds.push((await runtime.step({ step, batch, learningRate: 1e-3 })).seconds);
  }
  await runtime.stop();
  return (samples * sequence) / seconds.toSorted((a, b) => a - b)[steps / 2]!;
}

const results = new Map<number, Promise<number>>();

/** Measured once a run, however many figures use it. */
function once(dp: number): Promise<number> {
  const known = results.get(dp) ?? tokensPerSecond(dp);
  results.set(dp, known);
  return known;
}

export const benchmarks = [
  {
    id: "engine/train-one-rank",
    what: "tokens trained on in a second on nanoGPT's CPU setting by one rank",
    unit: "tokens/s",
    better: "higher",
    target: null,
    measure: (): Promise<number> => once(1),
  },
  {
    id: "engine/data-parallel-speedup",
    what: "speed of two data-parallel ranks over one on two cores, nanoGPT's CPU setting",
    unit: "ratio",
    better: "higher",
    target: 1.6,
    measure: async (): Promise<number> => (await once(2)) / (await once(1)),
  },
] as const;
