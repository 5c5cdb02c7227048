/** The peak of fine-tuning and of offloading in the engine beside the estimate of the cost model. */
import { memory } from "@trireme/cost-model";
import { embeddedRuntime } from "@trireme/engine";
import { defineRun } from "@trireme/run";
import { type Adapter, type Plan, defineModel, definePlan } from "@trireme/workload";
import { expect, test } from "vitest";

const sequence = 64;
const form = {
  layers: 6,
  hidden: 256,
  heads: 4,
  ffn: 512,
  vocab: 256,
  context: sequence,
  position: "rotary",
  norm: "rmsnorm",
  activation: "swiglu",
  bias: false,
  tied: false,
} as const;
const beside = (base: Adapter["base"]): { readonly adapter: Adapter } => ({
  adapter: { rank: 8, targets: ["query", "key", "value", "output"], base },
});

test.each<[string, { readonly adapter?: Adapter }, Partial<Plan>]>([
  ["adapters", beside("full"), {}],
  ["adapters beside 8 bits", beside("int8"), {}],
  ["adapters beside 4 bits", beside("nf4"), {}],
  ["adapters beside 4 bits on two ranks", beside("nf4"), { tp: 2 }],
  ["states on the host", {}, { offload: "optimizer" }],
  ["states on the host, ZeRO 1", {}, { dp: 2, zero: 1, offload: "optimizer" }],
])("%s: within 15 % of the estimate", async (_, more, degrees) => {
  const model = defineModel({ ...form, ...more });
  const shape = { globalBatch: 4, microbatch: 1, sequence, precision: "fp32" } as const;
  const plan = definePlan(model, { ...shape, ...degrees });
  const described = defineRun({
    model: { layers: 2, hidden: 32, heads: 2, vocab: 16, context: 8 },
    cluster: {
      cpu: { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" },
      devices: plan.dp * plan.tp,
    },
    plan: { globalBatch: 4, precision: "fp32" },
  });
  const runtime = embeddedRuntime();
  try {
    await runtime.start({ ...described, model, plan });
    const tokens = Int32Array.from({ length: 4 * (sequence + 1) }, (_token, i) => (i * 7) % 256);
    for (let step = 0; step < 2; step++) {
      const batch = { step, tokens, rows: 4, width: sequence + 1 };
      await runtime.step({ step, batch, learningRate: 1e-3 });
    }
    const peak = Math.max(...(await runtime.memory()));
    const overhead = { fixed: 0, fragmentation: 0, libraries: 0, groupedLibraries: 0 };
    const { total } = memory({ model, plan, overhead });
    expect(Math.abs(peak / total - 1)).toBeLessThan(0.15);
  } finally {
    await runtime.stop();
  }
});
