/**
 * Jiang et al., MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs, NSDI
 * 2024 (arXiv 2402.15627), Table 2, the Megatron-LM rows: GPT-3 175B, sequence 2048, TP 8, PP 8, six
 * interleaved stages, A100 with eight 200 Gbit/s ports a host.
 */
import { expect, test } from "vitest";
import { simulateStep } from "@trireme/simulator";
import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";

const gpt3 = model("gpt3-175b");

// Batch, GPUs, iteration time in seconds, MFU.
const rows = [
  [768, 256, 40.0, 0.53],
  [768, 512, 21.2, 0.499],
  [768, 768, 15.2, 0.467],
  [768, 1024, 11.9, 0.447],
  [6144, 3072, 29.02, 0.487],
  [6144, 6144, 14.78, 0.478],
  [6144, 8192, 12.24, 0.433],
  [6144, 12_288, 8.57, 0.412],
] as const;

test.each(rows)(
  "batch %i on %i GPUs: the step of %f s within a fifth",
  (batch, gpus, seconds, mfu) => {
    const plan = definePlan(gpt3, {
      tp: 8,
      pp: 8,
      vpp: 6,
      dp: gpus / 64,
      globalBatch: batch,
      sequenceParallel: true,
      recompute: "selective",
      flashAttention: false,
      zero: 1,
    });
    const cluster = defineCluster({ host: "dgx-a100-80", hosts: gpus / 8 });
    const simulated = simulateStep({ model: gpt3, plan, cluster });
    expect(Math.abs(simulated.step / seconds - 1)).toBeLessThan(0.2);
    // The paper's FLOPs per token are 1.076e12 to 1.078e12; MFU and time must tell the same.
    expect(simulated.mfu * simulated.step).toBeCloseTo(mfu * seconds, mfu * seconds > 15 ? 0 : 1);
    expect(simulated.fits).toBe(true);
    expect(simulated.folded).toBe(true);
  },
);

test("12,288 GPUs are eight kinds of ranks, and as many events as 64 with their microbatches", () => {
  const simulate = (dp: number, globalBatch: number): ReturnType<typeof simulateStep> => {
    const plan = definePlan(gpt3, {
      tp: 8,
      pp: 8,
      vpp: 6,
      dp,
      globalBatch,
      sequenceParallel: true,
    });
    const cluster = defineCluster({ host: "dgx-a100-80", hosts: 1536 });
    return simulateStep({ model: gpt3, plan, cluster });
  };
  const { timeline, standIn, events } = simulate(192, 6144);
  expect(standIn).toHaveLength(12_288);
  expect(new Set(standIn).size).toBe(8);
  expect(timeline.length).toBeGreaterThan(8 * 6 * 32 * 2);
  // One reduction of gradients a stage is all that replicas add.
  expect(events - simulate(1, 32).events).toBe(48);
});
