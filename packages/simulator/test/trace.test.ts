/** A step on 64 GPUs as a trace: Perfetto's protobuf under its schema, and Chrome's JSON. */
import { expect, test } from "vitest";
import { simulateStep } from "@trireme/simulator";
import { fromChromeTrace, statistics, toChromeTrace } from "@trireme/timeline";
import { fromPerfetto, toPerfetto } from "@trireme/timeline/perfetto";
import { defineCluster } from "@trireme/topology";
import { defineModel, definePlan } from "@trireme/workload";

const model = defineModel({ layers: 16, hidden: 1024, heads: 16, vocab: 4096, context: 512 });
const plan = definePlan(model, { tp: 4, pp: 4, dp: 4, globalBatch: 32, sequenceParallel: true });
const cluster = defineCluster({ host: "dgx-h100", hosts: 8 });
const { timeline, step } = simulateStep({ model, plan, cluster, unfold: true });

test("the Perfetto trace of 64 GPUs decodes under Perfetto's schema, every span of it", async () => {
  const back = await fromPerfetto(await toPerfetto(timeline));
  expect(back.ranks).toBe(64);
  expect(back.length).toBe(timeline.length);
  // Perfetto's times are nanoseconds.
  expect(Math.abs(statistics(back).makespan - step)).toBeLessThan(2e-9);
  expect(back.parents.length).toBeGreaterThan(0);
});

test("the Chrome trace of 64 GPUs is read back, every span of it", () => {
  const text = toChromeTrace(timeline, { name: "one step" });
  const back = fromChromeTrace(text);
  expect(back.length).toBe(timeline.length);
  expect(back.ranks).toBe(64);
});
