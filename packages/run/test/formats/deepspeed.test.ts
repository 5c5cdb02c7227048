import { defineRun } from "@trireme/run";
import { fromDeepSpeed, toDeepSpeed } from "@trireme/run/formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

/** Settings of the kind that DeepSpeed's documentation shows, written anew. */
const zero2 = {
  train_batch_size: 64,
  train_micro_batch_size_per_gpu: 2,
  gradient_clipping: 1.0,
  bf16: { enabled: true },
  zero_optimization: {
    stage: 2,
    overlap_comm: true,
    reduce_bucket_size: 5e8,
    offload_optimizer: { device: "cpu", pin_memory: true },
  },
  optimizer: {
    type: "AdamW",
    params: { lr: 3e-5, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01 },
  },
  scheduler: {
    type: "WarmupDecayLR",
    params: {
      warmup_num_steps: 100,
      warmup_max_lr: 3e-5,
      warmup_type: "linear",
      total_num_steps: 1000,
    },
  },
};
const rest = { model: "gpt2", cluster: { host: "dgx-h100", hosts: 1 } };

describe("DeepSpeed's configuration", () => {
  it("becomes plan, optimizer and steps, and what has no counterpart is listed", () => {
    const { description, unsupported } = fromDeepSpeed(zero2);
    const run = defineRun({ ...rest, ...description });
    expect(run.plan).toMatchObject({
      dp: 8,
      globalBatch: 64,
      microbatch: 2,
      zero: 2,
      precision: "bf16",
      overlapDataParallel: true,
      offload: "optimizer",
    });
    expect(run.optimizer).toMatchObject({
      learningRate: 3e-5,
      warmup: 100,
      schedule: "linear",
      minimumLearningRate: 0,
      beta2: 0.999,
      clip: 1,
    });
    expect(run.steps).toBe(1000);
    expect(unsupported.map((u) => u.option)).toEqual([
      "zero_optimization.reduce_bucket_size",
      "zero_optimization.offload_optimizer.pin_memory",
    ]);
  });

  it("with accumulation steps needs the number of replicas", () => {
    const config = { train_micro_batch_size_per_gpu: 2, gradient_accumulation_steps: 4 };
    expect(fromDeepSpeed(config).description["plan"]).not.toHaveProperty("globalBatch");
    expect(fromDeepSpeed(config, { dp: 8 }).description["plan"]).toMatchObject({
      dp: 8,
      globalBatch: 64,
    });
  });

  it("leaves out what is auto", () => {
    const config = {
      train_batch_size: "auto",
      optimizer: { type: "AdamW", params: { lr: "auto" } },
    };
    expect(fromDeepSpeed(config).description).toEqual({ plan: { precision: "fp32" } });
  });

  it("lists a warm-up that is no straight line, as it is by default", () => {
    const config = { scheduler: { type: "WarmupLR", params: { warmup_num_steps: 10 } } };
    expect(fromDeepSpeed(config).unsupported.map((u) => u.option)).toEqual([
      "scheduler.params.warmup_type",
    ]);
  });

  it("of another optimizer or schedule is listed", () => {
    const config = { optimizer: { type: "Lamb" }, scheduler: { type: "OneCycle" } };
    expect(fromDeepSpeed(config).unsupported.map((u) => u.option)).toEqual([
      "optimizer.type",
      "scheduler.type",
    ]);
  });

  it.each([null, undefined, 3, "text", []])("%j is an empty one", (config) => {
    expect(fromDeepSpeed(config).unsupported).toEqual([]);
  });

  it("goes round for every run that is data parallel alone", () => {
    const settings = fc.record({
      zero: fc.constantFrom(0, 1, 2, 3),
      reductionPrecision: fc.constantFrom("fp32", undefined),
      whole: fc.boolean(),
      microbatch: fc.constantFrom(1, 2, 4),
      precision: fc.constantFrom("bf16", "fp16", "fp32"),
      overlapDataParallel: fc.boolean(),
      schedule: fc.constantFrom("constant", "cosine", "linear"),
      warmup: fc.integer({ min: 0, max: 100 }),
      learningRate: fc.double({ min: 1e-6, max: 1e-2, noNaN: true }),
    });
    fc.assert(
      fc.property(settings, ({ schedule, warmup, learningRate, whole, ...sharding }) => {
        // Shares alone are no sums of all.
        const exchange = { gradientExchange: "all-reduce" } as const;
        const plan = { ...sharding, ...(whole && sharding.zero < 3 ? exchange : {}) };
        const floor = schedule === "linear" ? { minimumLearningRate: 0 } : {};
        const optimizer = { schedule, warmup, learningRate, ...floor };
        const run = defineRun({
          ...rest,
          plan: { ...plan, globalBatch: 64 },
          optimizer,
          steps: 200,
        });
        const { config, unsupported } = toDeepSpeed(run);
        expect(unsupported.map((u) => u.option)).toEqual(["model"]);
        const back = fromDeepSpeed(config, { dp: 8 });
        expect(back.unsupported).toEqual([]);
        const again = defineRun({ ...rest, ...back.description, steps: 200 });
        expect(again.plan).toEqual(run.plan);
        const { minimumLearningRate, ...exact } = run.optimizer;
        expect(again.optimizer).toMatchObject(exact);
        // Written as a share of the peak: one rounding there and one back.
        expect(again.optimizer.minimumLearningRate).toBeCloseTo(minimumLearningRate, 15);
      }),
    );
  });

  it("says of a run what belongs in the script", () => {
    const plan = { tp: 2, pp: 2, globalBatch: 8, recompute: "full" };
    const run = defineRun({
      model: "gpt2",
      cluster: { host: "dgx-h100", hosts: 1 },
      plan,
      optimizer: { schedule: "wsd" },
    });
    expect(toDeepSpeed(run).unsupported.map((u) => u.option)).toEqual([
      "model",
      "optimizer.schedule",
      "plan.tp",
      "plan.pp",
      "plan.recompute",
    ]);
  });
});
