import { RunError, defineRun } from "@trireme/run";
import { fromMegatron, toMegatron } from "@trireme/run/formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

/** Settings of the kind that Megatron-LM's example scripts for a GPT-3 175B have, written anew. */
const gpt3Script = `
GPT_MODEL_ARGS=( )  # the arrays' contents follow
`;
const gpt3 = `
    --num-layers 96 # decoder
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --vocab-size 50257
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16
    --micro-batch-size 1 \\
    --global-batch-size 1536
    --train-iters 500000
    --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95
    --init-method-std 0.006
    --clip-grad 1.0
    --fp16
    --lr 6.0e-5 --lr-decay-style cosine --min-lr 6.0e-6
    --lr-warmup-iters 500
    --data-path "my data/prefix" --split 949,50,1
    --save-interval 10000 --eval-interval 1000 --eval-iters 10
`;

const cluster = { host: "dgx-a100-80", hosts: 16 };

describe("Megatron-LM's arguments", () => {
  it("of a GPT-3 script become a run, and what it cannot say is listed", () => {
    const { description, unsupported } = fromMegatron(gpt3);
    const run = defineRun({ ...description, cluster });
    expect(run.model).toMatchObject({
      layers: 96,
      hidden: 12_288,
      heads: 96,
      ffn: 49_152,
      tied: true,
    });
    // 50,257 rows padded to a multiple of 128 on each of 8 ranks.
    expect(run.model.vocab).toBe(51_200);
    expect(run.plan).toMatchObject({
      tp: 8,
      pp: 16,
      dp: 1,
      precision: "fp16",
      gradientPrecision: "fp16",
      scatterGather: true,
      dropout: 0.1,
    });
    expect(run.optimizer).toMatchObject({
      learningRate: 6e-5,
      minimumLearningRate: 6e-6,
      warmup: 500,
      beta2: 0.95,
    });
    expect(run).toMatchObject({ steps: 500_000, seed: 1234 });
    expect(run.checkpoint.every).toBe(10_000);
    expect(unsupported.map(({ option, value }) => [option, value])).toEqual([
      ["--init-method-std", "0.006"],
      ["--data-path", "my data/prefix"],
      ["--split", "949,50,1"],
    ]);
  });

  it("of a Llama script have its form", () => {
    const { description, unsupported } = fromMegatron(
      "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --ffn-hidden-size 14336 --max-position-embeddings 8192 --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --vocab-size 128256 --hidden-dropout 0 --attention-dropout 0 --bf16 --use-distributed-optimizer --overlap-grad-reduce --sequence-parallel --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4 --micro-batch-size=1 --global-batch-size=128 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
    );
    expect(unsupported).toEqual([]);
    const run = defineRun({ ...description, cluster: { host: "dgx-h100", hosts: 2 } });
    expect(run.model).toMatchObject({
      kvHeads: 8,
      norm: "rmsnorm",
      position: "rotary",
      qkvBias: false,
      vocab: 128_256,
    });
    expect(run.plan).toMatchObject({
      vpp: 2,
      schedule: "interleaved",
      zero: 1,
      recompute: "full",
      dropout: 0,
      overlapDataParallel: true,
      overlapPointToPoint: true,
    });
  });

  it("count the ends as layers where chunks are said by their layers", () => {
    const { description, unsupported } = fromMegatron(
      "--num-layers 94 --hidden-size 64 --num-attention-heads 4 --pipeline-model-parallel-size 32 --num-layers-per-virtual-pipeline-stage 1 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split --micro-batch-size 1 --global-batch-size 32",
    );
    expect(unsupported).toEqual([]);
    expect(description["plan"]).toMatchObject({
      vpp: 3,
      accountForEmbedding: true,
      accountForLoss: true,
    });
  });

  it("swiglu without a width has two thirds of four, in multiples of 64", () => {
    const { description } = fromMegatron(
      "--num-layers 2 --hidden-size 4096 --num-attention-heads 32 --swiglu",
    );
    // The width of Llama 7B before it was rounded up to 11,008.
    expect(description["model"]).toMatchObject({ ffn: 10_880 });
  });

  it.each([
    [
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4",
      "--recompute-method",
    ],
    ["--normalization Other", "--normalization"],
    ["--lr-decay-style WSD --lr-wsd-decay-style exponential", "--lr-wsd-decay-style"],
    ["--hidden-dropout 0 --attention-dropout 0.1", "--hidden-dropout"],
    ["--optimizer sgd", "--optimizer"],
    ["--train-iters 10 --lr-decay-iters 20", "--lr-decay-iters"],
    ["--num-experts 8 --moe-layer-freq 2", "--moe-layer-freq"],
    ["--num-experts 8 --moe-layer-freq ([1]*2+[0]*2)", "--moe-layer-freq"],
    ["--cp-comm-type a2a+p2p", "--cp-comm-type"],
    ["--moe-token-dispatcher-type other", "--moe-token-dispatcher-type"],
    ["--moe-token-dispatcher-type flex", "--moe-token-dispatcher-type"],
    ["--moe-expert-capacity-factor 1.5", "--moe-expert-capacity-factor"],
    ["--cuda-graph-impl local --cuda-graph-scope attn", "--cuda-graph-scope"],
    ["--softmax-type off-by-one", "--softmax-type"],
    ["--window-size 4,4", "--window-size"],
    ["--pipeline-model-parallel-layout Ett|tt", "--pipeline-model-parallel-layout"],
    ["--expert-axis 3", "--expert-axis"],
    ["--fp8-format e4m3", "--fp8-format"],
  ])("%s is listed as unsupported", (args, option) => {
    expect(fromMegatron(args).unsupported.map((u) => u.option)).toContain(option);
  });

  it.each([
    ["--num-layers $LAYERS", /shell variable; put its value in/],
    ["--num-layers many", /--num-layers must be a number/],
    ["--num-layers", /needs a number/],
    [gpt3Script, /a value without an option/],
  ])("%j is refused", (args, message) => {
    expect(() => fromMegatron(args)).toThrow(RunError);
    expect(() => fromMegatron(args)).toThrow(message);
  });

  it("go round: a run written as arguments is read as the same run", () => {
    const settings = fc.record({
      tp: fc.constantFrom(1, 2, 4),
      pp: fc.constantFrom(1, 2, 4),
      vpp: fc.constantFrom(1, 2),
      zero: fc.constantFrom(0, 1, 2, 3),
      recompute: fc.constantFrom("none", "selective", "full"),
      precision: fc.constantFrom("bf16", "fp16", "fp32"),
      flashAttention: fc.boolean(),
      overlapDataParallel: fc.boolean(),
      overlapTensorParallel: fc.boolean(),
      overlap: fc.boolean(),
      sequenceParallel: fc.boolean(),
      fusedSoftmax: fc.boolean(),
      cp: fc.constantFrom(1, 2),
      matrixPrecision: fc.constantFrom(undefined, "fp8"),
      dropout: fc.constantFrom(0, 0.1),
      model: fc.constantFrom("llama3-8b", { preset: "gpt2-medium", vocab: 50_304 }, "llama2-70b"),
      schedule: fc.constantFrom("constant", "cosine", "linear", "inverse-sqrt", "wsd"),
      decayShape: fc.constantFrom("linear", "cosine", "sqrt"),
    });
    fc.assert(
      fc.property(settings, ({ model, schedule, decayShape, overlap, ...plan }) => {
        const vpp = plan.pp > 1 ? plan.vpp : 1;
        const here = { host: "dgx-h100", devices: 32 };
        const run = defineRun({
          model,
          cluster: here,
          plan: { ...plan, vpp, overlapPointToPoint: vpp > 1 && overlap, globalBatch: 128 },
          optimizer: { schedule, decayShape, warmup: 7, learningRate: 2e-4 },
          steps: 1000,
        });
        const { args, unsupported } = toMegatron(run);
        expect(unsupported).toEqual([]);
        const back = fromMegatron(args);
        expect(back.unsupported).toEqual([]);
        const again = defineRun({ ...back.description, cluster: here });
        const { stageLayers: _, ...expected } = run.plan;
        expect(again.plan).toEqual(expected);
        const { name: __, source: ___, ...shape } = run.model;
        expect(again.model).toMatchObject(shape);
        // What only wsd has is not written for the other schedules.
        const { decay: ____, decayShape: _____, ...optimizer } = run.optimizer;
        expect(again.optimizer).toMatchObject(schedule === "wsd" ? run.optimizer : optimizer);
        expect([again.steps, again.seed]).toEqual([run.steps, run.seed]);
      }),
    );
  });

  it("say that the vocabulary is padded where ranks cannot share it evenly", () => {
    const cluster2 = { host: "dgx-h100", devices: 2 };
    const run = defineRun({ model: "gpt2", cluster: cluster2, plan: { tp: 2, globalBatch: 8 } });
    const [first] = toMegatron(run).unsupported;
    expect(first).toMatchObject({
      option: "model.vocab",
      reason: "is padded to 50258, a multiple of tp 2",
    });
  });

  it("say of a run what they cannot", () => {
    const run = defineRun({
      model: { layers: 5, hidden: 64, heads: 4, context: 32 },
      plan: { pp: 2, globalBatch: 8, schedule: "gpipe", stageLayers: [3, 2] },
      data: { path: "texts" },
      steps: 10,
      checkpoint: { interval: "10 min" },
      sample: { prompt: "a" },
    });
    expect(toMegatron(run).unsupported.map((u) => u.option)).toEqual([
      "plan.schedule",
      "data",
      "checkpoint.interval",
      "sample",
    ]);
  });
});
