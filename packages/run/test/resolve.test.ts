import { axes, definePlan, microbatches, model, ranks } from "@trireme/workload";
import { type Host, cpuHost } from "@trireme/topology";
import { GB, GBps, GFLOPS } from "@trireme/core";
import {
  RunError,
  applyOverrides,
  checkRun,
  defineRun,
  formatProblem,
  parseOverride,
} from "@trireme/run";
import { describe, expect, it } from "vitest";
import { smallRun } from "./small-run.ts";

function withChanges(...changes: string[]): unknown {
  return applyOverrides(smallRun, changes.map(parseOverride));
}

function twoCores(devices: number): Host {
  return cpuHost({ cores: 2, devices, peak: GFLOPS(33), memory: GB(4), memoryBandwidth: GBps(9) });
}

function problems(description: unknown): string[] {
  const check = checkRun(description);
  return check.ok ? [] : check.problems.map(formatProblem);
}

describe("a run that resolves", () => {
  const run = defineRun(smallRun);

  it("has every field of the plan, and as many devices as ranks", () => {
    expect(ranks(run.plan)).toBe(4);
    expect(run.cluster.devices).toBe(4);
    expect(microbatches(run.plan)).toBe(2);
    expect(axes(run.plan).map((axis) => axis.size)).toEqual([1, 2, 2]);
    expect(run.plan.sequence).toBe(64);
  });

  it("takes the vocabulary of the tokenizer and the arithmetic of the devices", () => {
    expect(run.model.vocab).toBe(256);
    expect(run.plan.precision).toBe("fp32");
  });

  it("computes in what the devices emulate when asked", () => {
    const { plan } = defineRun(withChanges("plan.precision=bf16", "plan.matrixPrecision=fp8"));
    expect([plan.precision, plan.matrixPrecision]).toEqual(["bf16", "fp8"]);
  });

  it("balances the layers of stages by their FLOPs where asked", () => {
    const plan = { pp: 8, globalBatch: 64, stageLayers: "balanced" };
    const cluster = { host: "dgx-a100-80", hosts: 1 };
    const shape = { layers: 32, hidden: 3072, heads: 24, ffn: 12_288, context: 2048 };
    const layersOf = (vocab: number): readonly number[] | undefined =>
      defineRun({ model: { ...shape, vocab }, cluster, plan }).plan.stageLayers;
    // A head weighs 0.8, 1.6, 3.1 and 6.3 layers (arXiv 2411.05288 §2.1); the longest other stage has 5, but 4 in the first case.
    for (const [vocab, last] of [
      [32_000, 4],
      [64_000, 3],
      [128_000, 1],
      [256_000, 0],
    ] as const) {
      const layers = layersOf(vocab)!;
      expect(layers.at(-1)).toBe(last);
      expect(layers.reduce((a, b) => a + b)).toBe(32);
      const rest = layers.slice(0, -1);
      expect(Math.max(...rest) - Math.min(...rest)).toBeLessThanOrEqual(1);
    }
  });

  it("says of each derived value where it comes from", () => {
    const from = new Map(run.derived.map((d) => [d.path.join("."), d.from]));
    expect(from.get("model.vocab")).toBe("the tokenizer's vocabulary");
    expect(from.get("plan.sequence")).toBe("the model's context");
    expect(from.get("evaluate.every")).toContain("at the end");
    expect(from.has("plan.pp")).toBe(false);
  });

  it("derives dp from the devices of the cluster", () => {
    const description = withChanges(
      "plan.dp=null",
      "cluster.host=dgx-h100",
      "cluster.hosts=2",
      "plan.globalBatch=16",
    );
    expect(defineRun(description).plan.dp).toBe(8);
  });

  it("takes part of a host for fewer devices than it has", () => {
    const { cluster } = defineRun(withChanges("cluster.host=dgx-h100"));
    expect([cluster.devices, cluster.pools[0]?.host.accelerators]).toEqual([4, 4]);
  });

  it("reads quantities with units and plain SI numbers alike", () => {
    const cpu = { cores: 2, memory: "8 GB", memoryBandwidth: 2e10, peak: "40 GFLOP/s" };
    const { cluster } = defineRun({ ...smallRun, cluster: { cpu } });
    const host = cluster.pools[0]?.host;
    expect(host?.accelerator.peak.fp32).toBe(40e9);
    expect(host?.accelerator.memory).toBe(2e9);
    expect(host?.concurrency).toBe(2);
  });

  it("describes a host of one's own by the catalogue's accelerator", () => {
    const link = { kind: "nvlink", bandwidth: "300 GB/s", latency: "2 us" };
    const network = { bandwidth: "200 Gbit/s", latency: "5 us" };
    const host = { accelerator: "a100-80", accelerators: 4, link, network };
    const { cluster } = defineRun({ ...smallRun, cluster: { host, hosts: 1 } });
    expect(cluster.pools[0]?.host.network.bandwidth).toBe(25e9);
    expect(cluster.pools[0]?.host.link.latency).toBeCloseTo(2e-6, 12);
  });

  it("asks for this machine where the cluster is left out", () => {
    const { cluster, fingerprint } = defineRun(smallRun, { local: twoCores });
    expect(cluster.pools[0]?.host.concurrency).toBe(2);
    // A measured machine differs from day to day; what is computed does not.
    expect(fingerprint).toBe(run.fingerprint);
  });

  it("keeps a preset's proportions when its width changes", () => {
    const small = defineRun(
      withChanges("model=llama3-8b", "model.hidden=1024", "model.heads=8", "plan.sequence=64"),
    );
    expect(small.model).toMatchObject({
      headDim: 128,
      kvHeads: 2,
      ffn: 3584,
      activation: "swiglu",
    });
  });

  it("resolves the learning-rate floor, the seeds and the evaluation", () => {
    const other = defineRun(withChanges("seed=7", "sample.prompt=The"));
    expect(other.optimizer.minimumLearningRate).toBeCloseTo(1e-4, 12);
    expect([other.data?.seed, other.sample?.seed]).toEqual([7, 7]);
    expect(other.evaluate).toEqual({ every: 10, batches: 4 });
  });
});

describe("plan: auto", () => {
  const description = { model: "gpt2", cluster: { host: "dgx-h100", hosts: 1 }, plan: "auto" };

  it("is refused in one line without a planner", () => {
    expect(problems(description)).toEqual([
      'plan = "auto": needs a planner, and none was given; state the degrees, for example plan.tp=8',
    ]);
  });

  it("takes the planner's plan, or its reason for having none", () => {
    const plan = definePlan(model("gpt2"), { dp: 8, globalBatch: 8 });
    expect(defineRun(description, { plan: () => ({ ok: true, plan }) }).plan).toBe(plan);
    const check = checkRun(description, {
      plan: () => ({ ok: false, reason: "nothing fits in 80 GB" }),
    });
    expect(check.ok ? "" : formatProblem(check.problems[0]!)).toBe(
      'plan = "auto": nothing fits in 80 GB',
    );
  });

  it("refuses a planner's plan for another number of devices", () => {
    const plan = definePlan(model("gpt2"), { dp: 4, globalBatch: 8 });
    const check = checkRun(description, { plan: () => ({ ok: true, plan }) });
    expect(check.ok ? "" : formatProblem(check.problems[0]!)).toContain(
      "4 ranks, but the cluster has 8 devices",
    );
  });
});

describe("a run that breaks rules", () => {
  it.each([
    [
      ["cluster.devices=7"],
      "plan: dp(2) x tp(1) x pp(2) = 4 ranks, but the cluster has 7 devices; nearest: 4 devices",
    ],
    [
      ["cluster.devices=8"],
      "plan: dp(2) x tp(1) x pp(2) = 4 ranks, but the cluster has 8 devices; nearest: dp 4, or 4 devices",
    ],
    [
      ["plan.dp=null", "plan.pp=4", "cluster.devices=7"],
      "plan: tp(1) x pp(4) = 4 does not divide the cluster's 7 devices; nearest: 4 or 8 devices",
    ],
    [
      ["cluster.host=dgx-h100", "cluster.devices=12"],
      "cluster.devices = 12: must be a multiple of the 8 devices of a dgx-h100; nearest: 8 or 16",
    ],
    [
      ["plan.globalBatch=6"],
      "plan.globalBatch = 6: is not a multiple of dp 2 × microbatch 2 = 4; the nearest is 8",
    ],
    [
      ["plan.precision=fp16"],
      'plan.precision = "fp16": cpu-core does not compute in fp16; use bf16 or fp32',
    ],
    [
      ["plan.matrixPrecision=fp4"],
      'plan.matrixPrecision = "fp4": cpu-core does not compute in fp4; leave it out',
    ],
    [["plan.tpp=2"], "plan.tpp: unknown key; did you mean tp?"],
    [["plan.zero=7"], "plan.zero = 7: must be one of 0, 1, 2, 3; did you mean 3?"],
    [
      ["plan.schedule=1f1"],
      'plan.schedule = "1f1": must be one of gpipe, 1f1b, interleaved, dfs-bfs,',
    ],
    [['plan.microbatch="2"'], 'plan.microbatch = "2": must be a number; write 2 without quotes'],
    [["plan.pp=2.5"], "plan.pp = 2.5: must be an integer; nearest: 2 or 3"],
    [
      ["plan.globalBatch=null"],
      "plan.globalBatch: required: samples of one step, over all replicas",
    ],
    [
      ["model.heads=3"],
      "model.hidden = 128: is not a multiple of heads 3; use heads 2, or state headDim",
    ],
    [
      ["model.vocab=100"],
      "model.vocab = 100: the byte tokenizer has 256 tokens, more than the model's vocabulary; nearest: 256, or leave it out",
    ],
    [
      ["data.tokenizer=character"],
      "model.vocab: required: an integer, since no data tell the vocabulary",
    ],
    [["model=gpt-2"], 'model = "gpt-2": '],
    [["steps=null"], "steps: required: optimizer steps, since there are data to train on"],
    [
      ["optimizer.warmup=11"],
      "optimizer.warmup = 11: must be at most the 10 steps of the run; nearest: 10",
    ],
    [
      ["cluster.hosts=1", "cluster.devices=4"],
      "cluster.devices = 4: give either hosts or devices, not both",
    ],
    [["data.validation=1"], "data.validation = 1: must be below 1"],
    [["data.path="], 'data.path = "": must not be empty'],
    [
      ["guard={}", "checkpoint.every=null", "checkpoint.interval=null"],
      "guard: needs checkpoints to go back to; state checkpoint.every or checkpoint.interval",
    ],
    [
      ["guard.settle=70", "checkpoint.every=5"],
      "guard.settle = 70: must be at most guard.window 64; nearest: 64",
    ],
    [["guard.factor=1", "checkpoint.every=5"], "guard.factor = 1: must be above 1"],
  ])("%s", (changes, line) => {
    const found = problems(withChanges(...changes));
    expect(found).toHaveLength(1);
    expect(found[0]?.startsWith(line)).toBe(true);
  });

  it("names all problems at once, in the order of the file", () => {
    const description = withChanges(
      "steps=0",
      "model.layers=x",
      "plan.pp=0",
      "data.tokeniser=byte",
      "sed=1",
    );
    expect(problems(description).map((line) => line.split(/ =|:/)[0])).toEqual([
      "model.layers",
      "plan.pp",
      "data.tokeniser",
      "steps",
      "sed",
    ]);
  });

  it("names problems of several sections that only resolving finds", () => {
    const description = withChanges(
      "plan.globalBatch=6",
      "optimizer.warmup=20",
      "optimizer.minimumLearningRate=1",
    );
    expect(problems(description)).toHaveLength(3);
  });

  it.each([null, undefined, 3, "run", [], [1], {}, { model: null }])(
    "refuses %j",
    (description) => {
      expect(() => defineRun(description)).toThrow(RunError);
    },
  );

  it("throws one error with a line for each problem", () => {
    const description = withChanges("plan.pp=0", "steps=0");
    expect(() => defineRun(description)).toThrow(RunError);
    expect(() => defineRun(description)).toThrow(/^plan\.pp.*\nsteps.*$/);
    expect(() => defineRun(description)).toThrow(expect.objectContaining({ code: "RUN" }));
  });
});
