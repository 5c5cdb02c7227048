import {
  type JsonSchema,
  type ModelSection,
  type PlanSection,
  defineRun,
  jsonSchema,
} from "@trireme/run";
import type { Model, Plan } from "@trireme/workload";
import { expect, expectTypeOf, it } from "vitest";

/** Keys that a section of the file may have. */
function keysOf(section: string): readonly string[] {
  const schema = jsonSchema().properties?.[section];
  const branches: readonly JsonSchema[] = schema?.anyOf ?? [];
  return branches.flatMap((branch) => Object.keys(branch.properties ?? {}));
}

it("a run file can say everything that a model and a plan have", () => {
  expectTypeOf<Exclude<keyof Model, keyof ModelSection | "source">>().toBeNever();
  expectTypeOf<Exclude<keyof Plan, keyof PlanSection>>().toBeNever();
  const run = defineRun({ model: "llama3-8b", cluster: "dgx-h100", plan: { globalBatch: 8 } });
  const { source: _, ...model } = run.model;
  expect(keysOf("model")).toEqual(expect.arrayContaining(Object.keys(model)));
  expect(keysOf("plan")).toEqual(expect.arrayContaining(Object.keys(run.plan)));
});

it("a resolved model and plan, written into a file, resolve to themselves", () => {
  const cluster = { host: "dgx-h100", hosts: 2 };
  const plan = { tp: 2, cp: 2, pp: 2, globalBatch: 16, matrixPrecision: "fp8", flashVersion: 3 };
  const run = defineRun({ model: { preset: "llama3-8b", rotaryBase: 1e6 }, cluster, plan });
  const { source: _, ...model } = run.model;
  const again = defineRun({ model, cluster, plan: run.plan });
  expect(again.model).toMatchObject(model);
  expect(again.plan).toEqual(run.plan);
  expect(again.fingerprint).toBe(run.fingerprint);
});
