/** The closed form of a split vocabulary against its schedule, replayed with the same costs. */
import { expect, test } from "vitest";
import { type StepCosts, estimate, stepCosts } from "@trireme/cost-model";
import { addVocabulary, createSchedule, replayVocabulary } from "@trireme/schedulers";
import { defineCluster } from "@trireme/topology";
import { type Plan, defineModel, definePlan, vocabularyBarriers } from "@trireme/workload";

const cluster = defineCluster({ host: "dgx-a100-80", hosts: 2 });

/** The schedule with passes placed by these costs, replayed with them. */
function played(plan: Plan, costs: StepCosts): number {
  const { s, t, exchange } = costs.vocabulary!;
  const mean = (of: Float64Array): number => of.reduce((a, b) => a + b, 0) / of.length;
  const base = createSchedule(plan.schedule, { ranks: plan.pp, microbatches: plan.globalBatch });
  const exchanges = {
    output: exchange.output,
    statistics: exchange.statistics,
    gradient: exchange["output-gradient"],
  };
  const times = {
    forward: mean(costs.forward),
    inputGradient: mean(costs.inputGradient),
    weightGradient: mean(costs.weightGradient),
    s,
    t,
    exchange: Math.max(...Object.values(exchanges)),
  };
  const barriers = vocabularyBarriers(plan) === 1 ? 1 : 2;
  return replayVocabulary(addVocabulary(base, { barriers, times }), {
    forward: (stage) => costs.forward[stage]!,
    inputGradient: (stage) => costs.inputGradient[stage]!,
    weightGradient: (stage) => costs.weightGradient[stage]!,
    pointToPoint: costs.pointToPoint,
    s,
    t,
    exchanges,
  }).makespan;
}

test.each([
  ["1f1b", 1, "two-barriers", 32_768],
  ["1f1b", 1, "two-barriers", 262_144],
  ["1f1b", 1, "one-barrier", 32_768],
  ["1f1b", 1, "one-barrier", 262_144],
  ["v-half", 2, "two-barriers", 32_768],
  ["v-half", 2, "two-barriers", 262_144],
  ["v-half", 2, "one-barrier", 131_072],
] as const)("%s, vpp %d, %s, a vocabulary of %d", (schedule, vpp, vocabulary, vocab) => {
  for (const pp of [8, 16]) {
    const model = defineModel({ layers: 32, hidden: 3072, heads: 24, context: 2048, vocab });
    const plan = definePlan(model, {
      pp,
      vpp,
      schedule,
      vocabulary,
      globalBatch: 128,
      overlapPointToPoint: true,
    });
    const o = { model, plan, cluster };
    const e = estimate({ ...o, checkMemory: false });
    if (!e.ok) throw new Error(e.reason);
    // Both without the update, and what waiting exchanges take from compute, which a replay has not.
    const { optimizer, pointToPoint } = e.breakdown;
    const ratio = (e.step - optimizer - pointToPoint) / played(plan, stepCosts(o));
    // V-Half's closed form is of the schedule alone, whose last backwards have no microbatches behind them.
    expect(ratio).toBeGreaterThan(schedule === "1f1b" ? 0.998 : 0.945);
    expect(ratio).toBeLessThan(1.002);
  }
});
