import { defineCluster } from "@trireme/topology";
import { type Plan, definePlan, model, ranks } from "@trireme/workload";
import { expect, test } from "vitest";
import { type Cost, estimate, stepEnergy, trainingCost } from "@trireme/cost-model";

const llama = model("llama2-7b");

function on(
  host: string,
  o: Partial<Plan>,
): { cost: Cost; plan: Plan; cluster: ReturnType<typeof defineCluster> } {
  const plan = definePlan(llama, { globalBatch: 1024, zero: 3, ...o });
  const cluster = defineCluster({ host, hosts: Math.ceil(ranks(plan) / 8) });
  const cost = estimate({ model: llama, plan, cluster, checkMemory: false });
  if (!cost.ok) throw new Error(cost.reason);
  return { cost, plan, cluster };
}

test("power falls far less than throughput as a run grows", () => {
  // Llama 7B under FSDP from 128 to 2,048 H100s: throughput of a GPU −37 %, its power −6 %, from 658 W to 620 W (arXiv 2411.13055).
  const small = on("dgx-h100", { dp: 128, globalBatch: 256 });
  const large = on("dgx-h100", { dp: 1024, globalBatch: 1024, microbatch: 1 });
  const [a, b] = [stepEnergy(small), stepEnergy(large)];
  const each = (x: typeof small): number => x.cost.tokensPerSecond / ranks(x.plan);
  expect(each(large)).toBeLessThan(each(small));
  const power = b.device / a.device;
  const throughput = each(large) / each(small);
  expect(1 - power).toBeLessThan(0.35 * (1 - throughput));
  expect(a.device).toBeGreaterThan(550);
  expect(a.device).toBeLessThanOrEqual(700);
});

test("energy is power by time, per token and per step", () => {
  const x = on("dgx-a100-80", { tp: 8, dp: 2, globalBatch: 64 });
  const e = stepEnergy(x);
  expect(e.energy).toBeCloseTo(e.site * x.cost.step, 6);
  expect(e.energyPerToken * 64 * 4096).toBeCloseTo(e.energy, 3);
  expect(e.site / e.device).toBeCloseTo(16 * 1.5 * 1.25, 9);
  expect(stepEnergy({ ...x, server: 1, site: 1 }).site).toBeCloseTo(16 * e.device, 6);
  expect(e.waiting).toBeLessThan(e.busy);
  expect(() => stepEnergy({ ...x, site: 0.9 })).toThrow("site 0.9 is a share of less than all");
});

test("a run costs steps, hours, money and carbon", () => {
  const x = on("dgx-a100-80", { tp: 8, dp: 2, globalBatch: 64 });
  const tokens = 1e9;
  const run = trainingCost({ ...x, tokens, pricePerDeviceHour: 2, carbonIntensity: 0.4 });
  expect(run.steps).toBe(Math.ceil(tokens / (64 * 4096)));
  expect(run.seconds).toBeCloseTo(run.steps * x.cost.step, 6);
  expect(run.deviceHours).toBeCloseTo((16 * run.seconds) / 3600, 9);
  expect(run.money).toBeCloseTo(2 * run.deviceHours, 9);
  expect(run.carbon).toBeCloseTo((0.4 * run.energy) / 3.6e6, 9);
  const halting = trainingCost({ ...x, tokens, effective: 0.5 });
  expect(halting.seconds).toBeCloseTo(2 * run.seconds, 6);
  expect(halting.money).toBeUndefined();
  expect(() => trainingCost({ ...x, tokens: 0 })).toThrow("tokens 0 must be above 0");
  expect(() => trainingCost({ ...x, tokens, effective: 1.2 })).toThrow("effective 1.2");
});
