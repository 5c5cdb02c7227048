import { embeddedRuntime } from "@trireme/engine";
import { defineRun } from "@trireme/run";
import { memory } from "@trireme/cost-model";
import { definePlan, defineModel, type PlanOptions } from "@trireme/workload";
const cpu = { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" };
const base = defineRun({
  model: { layers: 4, hidden: 128, heads: 4, vocab: 65, context: 64 },
  cluster: { cpu, devices: 1 },
  plan: { globalBatch: 12, microbatch: 12, precision: "fp32" },
});
const model = defineModel({ layers: 4, hidden: 256, heads: 8, vocab: 512, context: 128 });
const plans: Omit<PlanOptions, "globalBatch">[] = [
  {},
  { microbatch: 4 },
  { microbatch: 16 },
  { recompute: "full", microbatch: 8 },
  { recompute: "selective", microbatch: 8 },
  { pp: 2, microbatch: 2 },
  { pp: 4, microbatch: 1 },
  { dp: 2, zero: 1, microbatch: 4 },
  { dp: 2, zero: 3, microbatch: 4 },
  { tp: 2, sequenceParallel: true, microbatch: 4 },
  { tp: 2, microbatch: 4 },
  { cp: 2, microbatch: 4 },
];
for (const p of plans) {
  const plan = definePlan(model, { globalBatch: 16, precision: "fp32", ...p });
  const tokens = Int32Array.from({ length: 16 * 129 }, (_, i) => (i * 5) % 512);
  const r = embeddedRuntime();
  await r.start({ ...base, model, plan });
  for (let step = 0; step < 2; step++)
    await r.step({ step, batch: { step, tokens, rows: 16, width: 129 }, learningRate: 1e-3 });
  const bytes = await r.memory();
  await r.stop();
  const m = memory({
    model,
    plan,
    overhead: { fixed: 0, fragmentation: 0, libraries: 0, groupedLibraries: 0 },
  });
  const MB = (x: number) => (x / 1e6).toFixed(2);
  console.log(
    JSON.stringify(p),
    "measured",
    MB(Math.max(...bytes)),
    "predicted",
    MB(m.total),
    (Math.max(...bytes) / m.total).toFixed(3),
    "w",
    MB(m.weights),
    "g",
    MB(m.gradients),
    "o",
    MB(m.optimizer),
    "a",
    MB(m.activations),
    "ws",
    MB(m.workspace),
  );
}
