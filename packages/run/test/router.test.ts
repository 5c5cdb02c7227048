import { checkRun, defineRun, formatProblem } from "@trireme/run";
import { expect, test } from "vitest";

const experts = { count: 8, active: 2, selectionBias: true };
const shape = { layers: 2, hidden: 32, heads: 4, vocab: 50, context: 16 };

/** A run of experts of a capacity. */
function run(router: object, over: object = {}): object {
  return {
    model: { ...shape, experts },
    plan: { globalBatch: 4, expertCapacity: 1.5 },
    router,
    ...over,
  };
}

function problems(description: object): string[] {
  const check = checkRun(description);
  return check.ok ? [] : check.problems.map(formatProblem);
}

test("what is stated of routers is kept, and nothing else", () => {
  const router = {
    scoring: "sigmoid",
    balanceLoss: 0.02,
    zLoss: 1e-3,
    scale: 2.5,
    groups: { groups: 4, keep: 2 },
    biasRate: 1e-4,
    dropPolicy: "probability",
    capacityGroups: 4,
    capacityParts: { microbatch: 1 },
  };
  expect(defineRun(run(router)).router).toStrictEqual(router);
  expect(defineRun(run({})).router).toStrictEqual({});
  expect("router" in defineRun({ model: shape, plan: { globalBatch: 4 } })).toBe(false);
});

test("a router changes what a run computes, and so its fingerprint", () => {
  const of = (router: object): string => defineRun(run(router)).fingerprint;
  expect(of({ balanceLoss: 0.02 })).not.toBe(of({ balanceLoss: 0.01 }));
});

test.each([
  [
    run({}, { model: shape, plan: { globalBatch: 4 } }),
    "router: the model has no experts; leave router out",
  ],
  [
    run({ dropPolicy: "position" }, { plan: { globalBatch: 4 } }),
    'router.dropPolicy = "position": needs experts of a capacity; state plan.expertCapacity',
  ],
  [
    run({ capacityParts: { cp: 2 } }, { plan: { globalBatch: 4 } }),
    "router.capacityParts: needs experts of a capacity; state plan.expertCapacity",
  ],
  [
    run({ biasRate: 0.1 }, { model: { ...shape, experts: { count: 8, active: 2 } } }),
    "router.biasRate = 0.1: needs a selection bias; state model.experts.selectionBias",
  ],
  [run({ capacityGroups: 3 }), "router.capacityGroups = 3: must divide the 8 experts; nearest: 2"],
  [
    run({ groups: { groups: 8, keep: 1 } }),
    "router.groups: keep(1) x 1 experts per group = 1, too few for top-2; keep at least 2",
  ],
  [run({ scale: 0 }), "router.scale = 0: must be above 0"],
])("a router that has nothing to act on is refused: %#", (description, problem) => {
  expect(problems(description)).toEqual([problem]);
});

test("kernels are the same bits everywhere unless another kind is named", () => {
  const plain = { model: shape, plan: { globalBatch: 4 } };
  expect(defineRun(plain).engine).toStrictEqual({ kind: "embedded", kernels: "wasm" });
  const { engine } = defineRun({ ...plain, engine: { kernels: "auto" } });
  expect(engine.kernels).toBe("auto");
  expect(problems({ ...plain, engine: { kernels: "blas" } })[0]).toMatch(
    /^engine\.kernels = "blas": must be one of wasm, fused/,
  );
});

test("scales of FP8 are for products in FP8", () => {
  const engine = { fp8Scaling: "delayed" };
  const plain = { model: shape, plan: { globalBatch: 4 }, engine };
  expect(problems(plain)).toEqual([
    'engine.fp8Scaling = "delayed": needs products in FP8; state plan.matrixPrecision fp8',
  ]);
  const run8 = { ...plain, plan: { globalBatch: 4, matrixPrecision: "fp8" } };
  expect(defineRun(run8).engine.fp8Scaling).toBe("delayed");
});
