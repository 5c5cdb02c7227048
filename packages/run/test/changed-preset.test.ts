import { checkRun, defineRun, formatProblem } from "@trireme/run";
import { describe, expect, it } from "vitest";

const of = (model: object): ReturnType<typeof defineRun>["model"] =>
  defineRun({ model, cluster: "dgx-h100", plan: { globalBatch: 8 } }).model;

describe("a preset with changes", () => {
  it("made narrower keeps its head groups and inner widths, experts' too", () => {
    expect(of({ preset: "qwen2-57b-a14b", hidden: 1792, heads: 14 })).toMatchObject({
      kvHeads: 2,
      headDim: 128,
      ffn: 9472,
      experts: { count: 64, ffn: 1280, sharedFfn: 10_240 },
    });
  });

  it("of latent attention keeps its latents", () => {
    const m = of({ preset: "deepseek-v2-lite", hidden: 1024, heads: 8, layers: 4 });
    expect(m).toMatchObject({ kvHeads: 8, headDim: 192, latent: { keyValueRank: 512 } });
  });

  it("takes anew what follows from a changed field", () => {
    expect(of({ preset: "gpt2", norm: "rmsnorm" }).normBias).toBe(false);
    expect(of({ preset: "gpt2", bias: false })).toMatchObject({
      qkvBias: false,
      outputBias: false,
    });
    expect(of({ preset: "gpt2", block: "parallel" }).sharedNorm).toBe(true);
    expect(of({ preset: "gpt2", norm: "rmsnorm", normBias: true }).normBias).toBe(true);
    const latent = { keyValueRank: 64, nopeDim: 32, ropeDim: 16, valueDim: 32 };
    expect(of({ preset: "llama3-8b", latent })).toMatchObject({ kvHeads: 32, headDim: 48 });
  });
});

describe("a plan of pipelines that differ", () => {
  const model = "llama2-13b";
  const pipelines = [
    [
      { tp: 4, layers: 30 },
      { tp: 2, layers: 10 },
    ],
    [{ tp: 2, layers: 40 }],
  ];

  it("runs on as many devices as its stages are wide together", () => {
    const run = defineRun({ model, cluster: "dgx-h100", plan: { pipelines, globalBatch: 4 } });
    expect(run.plan).toMatchObject({ pipelines, tp: 4, pp: 2, dp: 2 });
    const again = defineRun({ model, cluster: "dgx-h100", plan: run.plan });
    expect(again.plan).toEqual(run.plan);
    // Without a cluster there are as many devices as ranks.
    const local = defineRun({ model, plan: { pipelines, globalBatch: 4 } });
    expect(local.cluster.devices).toBe(8);
  });

  it.each<readonly [object, number, string]>([
    [
      { pipelines },
      2,
      "plan.pipelines: pipelines of 4+2, 2 = 8 ranks, but the cluster has 16 devices; nearest: 8 devices",
    ],
    [{ pipelines, dp: 3 }, 1, "plan.dp = 3: is not 2, which the pipelines make it"],
    [{ pipelines: [] }, 1, "pipelines has no stage"],
    [{ pipelines: [[{ tp: 8 }]] }, 1, "plan.pipelines[0][0].layers"],
  ])("%j on %i hosts is refused", (plan, hosts, line) => {
    const cluster = { host: "dgx-h100", hosts };
    const check = checkRun({ model, cluster, plan: { ...plan, globalBatch: 4 } });
    expect(check.ok ? [] : check.problems.map(formatProblem)).toEqual([
      expect.stringContaining(line),
    ]);
  });
});
