/** Simulated timelines say what each span waited for, so that differences between them are explained. */
import { expect, test } from "vitest";
import { rooflinePricer } from "@trireme/cost-model";
import { type SimulateOptions, simulateStep } from "@trireme/simulator";
import { type Comparison, compare, criticalPath } from "@trireme/timeline";
import { type Cluster, type Host, defineCluster, host } from "@trireme/topology";
import { type Operator, type Plan, definePlan, model } from "@trireme/workload";

const gpt3 = model("gpt3-175b");
// Without its interior, so that the link alone says how fast it is.
const { interior: _, ...a100 } = host("dgx-a100-80");

function plan(o: Partial<Plan>): Plan {
  return definePlan(gpt3, {
    tp: 8,
    pp: 8,
    dp: 4,
    vpp: 2,
    globalBatch: 64,
    sequenceParallel: true,
    zero: 1,
    overlapDataParallel: true,
    overlapPointToPoint: true,
    ...o,
  });
}

function cluster(change: Partial<Host>): Cluster {
  return defineCluster({ host: { ...a100, ...change }, hosts: 32 });
}

const base: SimulateOptions = { model: gpt3, plan: plan({}), cluster: cluster({}) };

/** Compares the base with a change of it. */
function changed(change: Partial<SimulateOptions>): Comparison {
  return compare(simulateStep(base).timeline, simulateStep({ ...base, ...change }).timeline);
}

test("with sends that block, every instant of the critical path is explained", () => {
  for (const overlapDataParallel of [false, true]) {
    const p = plan({ overlapPointToPoint: false, overlapDataParallel });
    const { timeline, step } = simulateStep({ ...base, plan: p });
    const { path, length, violations } = criticalPath(timeline);
    expect(length).toBe(step);
    expect(violations).toBe(0);
    // Times are sums in another order: rounding only.
    expect(path.reduce((sum, each) => sum + each.delay, 0)).toBeLessThan(1e-9);
  }
});

test("slower arithmetic is found to be computing", () => {
  const roofline = rooflinePricer(a100.accelerator, "bf16");
  const { difference, causes } = changed({
    pricer: {
      ...roofline,
      operator: (op) => roofline.operator(op) * (op.kind === "gemm" ? 1.1 : 1),
    },
  });
  expect(difference).toBeGreaterThan(0);
  expect(causes.compute / difference).toBeGreaterThan(0.95);
});

test("a slower link is found to be communication", () => {
  const slow = { ...a100.link, bandwidth: a100.link.bandwidth / 2 };
  const { difference, causes } = changed({ cluster: cluster({ link: slow }) });
  expect(difference).toBeGreaterThan(0);
  expect(causes.communication / difference).toBeGreaterThan(0.95);
});

test("sends that no longer overlap are found to be lost overlap", () => {
  const { difference, causes } = changed({ plan: plan({ overlapPointToPoint: false }) });
  expect(difference).toBeGreaterThan(0);
  expect(causes.overlap / difference).toBeGreaterThan(0.95);
});

test("a measured timeline, which says nothing of dependencies, is explained by the predicted ones", () => {
  const roofline = rooflinePricer(a100.accelerator, "bf16");
  const pricer = { ...roofline, operator: (op: Operator) => 1.1 * roofline.operator(op) };
  const predicted = simulateStep(base).timeline;
  const slow = simulateStep({ ...base, pricer }).timeline;
  const measured = {
    ...slow,
    parentsAt: new Uint32Array(slow.length + 1),
    parents: new Uint32Array(),
  };
  const { difference, causes } = compare(predicted, measured);
  expect(difference).toBeGreaterThan(0);
  expect(causes.compute / difference).toBeGreaterThan(0.95);
});
