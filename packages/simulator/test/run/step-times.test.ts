import {
  estimatedStepTimes,
  elasticPlan,
  replicaHosts,
  simulatedStepTimes,
} from "@trireme/simulator";
import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";
import { expect, test } from "vitest";

const gpt = model("llama2-13b");
const plan = definePlan(gpt, {
  tp: 4,
  pp: 4,
  dp: 8,
  globalBatch: 128,
  zero: 1,
  sequenceParallel: true,
});
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 16 });
const input = { model: gpt, plan, cluster };

test("each condition is priced once, whichever replica it is of, and what is no worse is left out", () => {
  const times = simulatedStepTimes(input);
  const healthy = times.time(16);
  // tp 4, dp 8: a host has two replicas of one stage, four hosts a stage.
  const one = times.time(16, new Map([[0, 1.1]]));
  expect(one).toBeGreaterThan(healthy);
  expect(times.priced).toBe(2);
  expect(times.time(16, new Map([[3, 1.1]]))).toBe(one);
  expect(
    times.time(
      16,
      new Map([
        [0, 1.1],
        [2, 1.05],
      ]),
    ),
  ).toBe(one);
  expect(times.time(16, new Map([[1, 1.1001]]))).toBe(one);
  expect(times.priced).toBe(2);
  // Another stage of another replica is another condition.
  expect(
    times.time(
      16,
      new Map([
        [0, 1.1],
        [6, 1.1],
      ]),
    ),
  ).toBeGreaterThanOrEqual(one);
  expect(times.priced).toBe(3);
});

test("the estimate of slow hosts is within 6 % of the step played event by event", () => {
  // It takes the slow stage for the busiest, whose computing it is not; the step is never missed by more.
  const [estimated, simulated] = [estimatedStepTimes(input), simulatedStepTimes(input)];
  for (const slow of [
    [],
    [[0, 1.1]],
    [[5, 1.3]],
    [[12, 1.5]],
    [
      [1, 1.2],
      [4, 1.2],
    ],
    [
      [0, 1.2],
      [15, 1.4],
    ],
  ]) {
    const condition = new Map(slow as [number, number][]);
    const ratio = estimated.time(16, condition) / simulated.time(16, condition);
    expect(Math.abs(ratio - 1)).toBeLessThan(0.06);
  }
});

test("a slower host never makes a faster step", () => {
  for (const times of [estimatedStepTimes(input), simulatedStepTimes(input)]) {
    let last = times.time(16);
    for (const factor of [1.02, 1.05, 1.1, 1.3, 2]) {
      const time = times.time(16, new Map([[7, factor]]));
      expect(time).toBeGreaterThanOrEqual(last);
      last = time;
    }
  }
});

test("fewer replicas take more microbatches each, and the batch stays", () => {
  expect(replicaHosts(plan, cluster)).toBe(2);
  const fewer = elasticPlan(gpt, plan, 6 * 16);
  expect(fewer.dp).toBe(6);
  // 128 samples on six replicas: 22 of the fullest.
  expect(fewer.globalBatch).toBe(6 * 22);
  const times = estimatedStepTimes(input);
  expect(times.time(12) / times.time(16)).toBeGreaterThan(22 / 16 - 0.1);
  expect(times.time(12) / times.time(16)).toBeLessThan(22 / 16 + 0.02);
  expect(() => times.time(16, new Map([[0, 0.5]]))).toThrow(
    "host 0 is slower by 0.5: use 1 or more",
  );
});
