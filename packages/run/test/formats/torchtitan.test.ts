import { RunError, defineRun } from "@trireme/run";
import { formatToml, fromTorchtitan, parseToml, toTorchtitan } from "@trireme/run/formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

/** Settings of the kind that torchtitan's own training configurations have, written anew. */
const llama = `
[job]
dump_folder = "./out"

[metrics]
log_freq = 10

[model]
name = "llama3"
flavor = "70B"
converters = ["float8"]

[optimizer]
name = "AdamW"
lr = 1.5e-4

[lr_scheduler]
warmup_steps = 20

[training]
local_batch_size = 8
seq_len = 8192
max_norm = 1.0
steps = 1000
compile = true
dataset = "c4"

[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
enable_async_tensor_parallel = true

[checkpoint]
enable = true
interval = 500

[activation_checkpoint]
mode = "full"
`;
const cluster = { host: "dgx-h100", hosts: 32 };
const options = (unsupported: readonly { readonly option: string }[]): readonly string[] =>
  unsupported.map((u) => u.option);

describe("torchtitan's configuration", () => {
  it("of Llama 3 becomes a run, with torchtitan's defaults, and what has no counterpart is listed", async () => {
    const { description, unsupported } = fromTorchtitan(await parseToml(llama), { devices: 256 });
    const run = defineRun({ ...description, cluster });
    expect(run.model.name).toBe("llama3-70b");
    expect(run.plan).toMatchObject({
      tp: 8,
      dp: 32,
      zero: 3,
      microbatch: 8,
      globalBatch: 256,
      recompute: "full",
      sequenceParallel: true,
      matrixPrecision: "fp8",
      overlapTensorParallel: true,
      fusedNorm: true,
    });
    expect(run.optimizer).toMatchObject({
      learningRate: 1.5e-4,
      minimumLearningRate: 0,
      warmup: 20,
      schedule: "linear",
      beta2: 0.95,
      weightDecay: 0.1,
    });
    expect(run.checkpoint).toEqual({ every: 500, keep: 10, directory: "checkpoint" });
    expect(options(unsupported)).toEqual([
      "job.dump_folder",
      "metrics.log_freq",
      "training.dataset",
    ]);
  });

  it("counts embedding and output as a layer each when it shares layers out among stages", () => {
    const config = {
      model: { flavor: "8B" },
      parallelism: { pipeline_parallel_degree: 4, pipeline_parallel_schedule: "Interleaved1F1B" },
      activation_checkpoint: { mode: "none" },
    };
    const { description, unsupported } = fromTorchtitan(config, { devices: 8 });
    expect(unsupported).toEqual([]);
    // 34 slots over 8 stages: five in the first two, four in the rest.
    expect(description["plan"]).toMatchObject({
      vpp: 2,
      stageLayers: [4, 5, 4, 4, 4, 4, 4, 3],
      zero: 2,
    });
  });

  it.each([0, -1, 1.5])("refuses %d layers a stage", (perStage) => {
    const config = {
      model: { flavor: "8B" },
      parallelism: {
        pipeline_parallel_degree: 4,
        pipeline_parallel_schedule: "Interleaved1F1B",
        pipeline_parallel_layers_per_stage: perStage,
      },
    };
    expect(() => fromTorchtitan(config, { devices: 8 })).toThrow(
      `layers_per_stage = ${perStage}: must be an integer of at least 1`,
    );
  });

  it("without the number of ranks leaves replicas to the cluster", () => {
    const { description } = fromTorchtitan({ training: { global_batch_size: 64 } });
    expect(description["plan"]).toMatchObject({ globalBatch: 64 });
    expect(description["plan"]).not.toHaveProperty("dp");
  });

  it.each([
    [{ model: { name: "llama4" } }, "model.flavor"],
    [{ model: { converters: ["mx"] } }, "model.converters"],
    [{ optimizer: { name: "Adam" } }, "optimizer.name"],
    [{}, "activation_checkpoint.mode"],
    [{ training: { mixed_precision_reduce: "bfloat16" } }, "training.mixed_precision_reduce"],
    [{ training: { mixed_precision_param: "float16" } }, "training.mixed_precision_param"],
    [{ checkpoint: { enable: true, keep_latest_k: 0 } }, "checkpoint.keep_latest_k"],
    [
      { parallelism: { data_parallel_replicate_degree: 2 } },
      "parallelism.data_parallel_replicate_degree",
    ],
    [
      {
        model: { flavor: "8B" },
        parallelism: { pipeline_parallel_degree: 2, pipeline_parallel_schedule: "ZBVZeroBubble" },
      },
      "parallelism.pipeline_parallel_schedule",
    ],
    [
      { parallelism: { expert_parallel_comm_backend: "deepep" } },
      "parallelism.expert_parallel_comm_backend",
    ],
    [
      { parallelism: { context_parallel_rotate_method: "ring" } },
      "parallelism.context_parallel_rotate_method",
    ],
  ])("%j is listed as unsupported", (config, option) => {
    expect(options(fromTorchtitan(config).unsupported)).toContain(option);
  });

  it.each([
    [{ training: { steps: "many" } }, "training.steps"],
    [{ training: { compile: 1 } }, "training.compile"],
    [{ model: { flavor: 8 } }, "model.flavor"],
  ])("%j is refused by its path", (config, path) => {
    expect(() => fromTorchtitan(config)).toThrow(RunError);
    expect(() => fromTorchtitan(config)).toThrow(path);
  });

  it("that is no TOML is refused with its line", async () => {
    await expect(parseToml("a = = 1")).rejects.toThrow(/is no TOML/);
  });

  it("goes round through its text for every run that it can express", async () => {
    const settings = fc.record({
      tp: fc.constantFrom(1, 2, 4),
      cp: fc.constantFrom(1, 2),
      pp: fc.constantFrom(1, 2, 4),
      vpp: fc.constantFrom(1, 2, 4),
      microbatch: fc.constantFrom(1, 2),
      zero: fc.constantFrom(0, 2, 3),
      gpipe: fc.boolean(),
      recompute: fc.constantFrom("none", "operators", "full"),
      precision: fc.constantFrom("bf16", "fp32"),
      matrixPrecision: fc.constantFrom(undefined, "fp8"),
      vocabParallelLoss: fc.boolean(),
      overlapTensorParallel: fc.boolean(),
      compiled: fc.boolean(),
      schedule: fc.constantFrom("constant", "linear", "cosine", "wsd"),
      decayShape: fc.constantFrom("linear", "cosine", "sqrt"),
      clip: fc.constantFrom(0, 1, 0.5),
      learningRate: fc.double({ min: 1e-6, max: 1e-2, noNaN: true }),
      model: fc.constantFrom("llama3-8b", "llama3-70b"),
    });
    await fc.assert(
      fc.asyncProperty(settings, async (s) => {
        const { model, compiled, gpipe, schedule, decayShape, clip, learningRate, ...rest } = s;
        const vpp = rest.pp > 1 ? rest.vpp : 1;
        const run = defineRun({
          model,
          cluster,
          plan: {
            ...rest,
            vpp,
            schedule: vpp > 1 ? "interleaved" : rest.pp > 1 && gpipe ? "gpipe" : "1f1b",
            sequenceParallel: rest.tp > 1,
            fusedNorm: compiled,
            fusedElementwise: compiled,
            overlapDataParallel: true,
            globalBatch: 1024,
          },
          optimizer: { schedule, decayShape, clip, learningRate, warmup: 7 },
          steps: 1000,
          seed: 5,
          checkpoint: { every: 100, keep: 3, directory: "saves" },
        });
        const { config, unsupported } = toTorchtitan(run);
        expect(options(unsupported)).toEqual(["evaluate"]);
        const back = fromTorchtitan(await parseToml(await formatToml(config)));
        expect(back.unsupported).toEqual([]);
        const again = defineRun({ ...back.description, cluster });
        expect(again.model).toEqual(run.model);
        const { stageLayers, ...plan } = again.plan;
        expect(plan).toEqual(run.plan);
        // 32 and 80 layers divide evenly by every number of stages drawn.
        if (stageLayers !== undefined) expect(new Set(stageLayers).size).toBe(1);
        const { decay, decayShape: shape, minimumLearningRate, ...exact } = run.optimizer;
        expect(again.optimizer).toMatchObject(exact);
        if (schedule === "wsd") expect(again.optimizer).toMatchObject({ decay, decayShape: shape });
        // Written as a share of the peak: one rounding there and one back.
        expect(again.optimizer.minimumLearningRate).toBeCloseTo(minimumLearningRate, 15);
        expect([again.steps, again.seed]).toEqual([1000, 5]);
        expect(again.checkpoint).toEqual(run.checkpoint);
      }),
    );
  });

  it("keeps stages that some weight of embedding and output makes, and lists others", () => {
    const of = (stageLayers: readonly number[]): ReturnType<typeof toTorchtitan> =>
      toTorchtitan(
        defineRun({
          model: "llama3-8b",
          cluster: { host: "dgx-h100", hosts: 1 },
          plan: { pp: 4, globalBatch: 8, stageLayers, overlapDataParallel: true },
        }),
      );
    const uneven = of([7, 9, 9, 7]);
    expect(options(uneven.unsupported)).not.toContain("plan.stageLayers");
    const { description } = fromTorchtitan(uneven.config);
    expect(description["plan"]).toMatchObject({ stageLayers: [7, 9, 9, 7] });
    expect(options(of([16, 8, 4, 4]).unsupported)).toContain("plan.stageLayers");
  });

  it("has no flavor for a preset with changes", () => {
    const run = defineRun({
      model: { preset: "llama3-8b", layers: 16 },
      cluster: { host: "dgx-h100", hosts: 1 },
      plan: { globalBatch: 8 },
    });
    expect(run.model.name).toBe("llama3-8b");
    const { config, unsupported } = toTorchtitan(run);
    expect(options(unsupported)).toContain("model");
    expect(config).not.toHaveProperty("model.flavor");
  });

  it("says of a run what it cannot", () => {
    const run = defineRun({
      model: "gpt2",
      cluster: { host: "dgx-h100", hosts: 1 },
      plan: {
        tp: 2,
        globalBatch: 8,
        zero: 1,
        precision: "fp16",
        recompute: "selective",
        dropout: 0.1,
        flashAttention: false,
      },
      optimizer: { schedule: "inverse-sqrt" },
      checkpoint: { interval: "10 min" },
    });
    expect(options(toTorchtitan(run).unsupported)).toEqual([
      "model",
      "plan.precision",
      "plan.zero",
      "plan.sequenceParallel",
      "plan.recompute",
      "optimizer.schedule",
      "checkpoint.interval",
      "plan.flashAttention",
      "plan.overlapDataParallel",
      "plan.dropout",
      "evaluate",
    ]);
  });
});
