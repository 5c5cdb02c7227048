import { readFileSync } from "node:fs";
import { us } from "@trireme/core";
import {
  type Measurement,
  calibrate,
  characteristics,
  estimate,
  parseMeasurements,
  profilePricer,
  profileSupports,
  rooflinePricer,
} from "@trireme/cost-model";
import { accelerator, defineCluster } from "@trireme/topology";
import { type Operator, defineModel, definePlan, stageOperators, stages } from "@trireme/workload";
import fc from "fast-check";
import { expect, test } from "vitest";

const text = readFileSync(new URL("vectors/cpu-operators.csv", import.meta.url), "utf8");
const core = accelerator("cpu-core");
const a100 = accelerator("a100-80");

/** Operators of several small models, all different. */
function operators(headDim = 64): Operator[] {
  const known = new Map<string, Operator>();
  for (const hidden of [512, 1024, 2048]) {
    for (const context of [512, 1024, 2048]) {
      const m = defineModel({ layers: 1, hidden, heads: hidden / headDim, vocab: 32_000, context });
      const plan = definePlan(m, { globalBatch: 1 });
      for (const o of stageOperators(m, plan, stages(m, plan)[0]!).operators) known.set(o.key, o);
    }
  }
  return [...known.values()];
}

test("least squares find the characteristics that measurements were made with", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.3, max: 0.95, noNaN: true }),
      fc.double({ min: 0.3, max: 0.95, noNaN: true }),
      fc.double({ min: 1, max: 8, noNaN: true }),
      (matrix, memory, microseconds) => {
        const real = { ...characteristics(a100), matrix, memory, gap: us(microseconds) };
        const pricer = rooflinePricer(a100, "bf16", { characteristics: real });
        const measurements = operators().map((operator) => ({
          operator,
          seconds: pricer.operator(operator),
        }));
        const profile = calibrate({ measurements, accelerator: a100, precision: "bf16" });
        // Golden section over even steps of the logarithm ends within a per cent.
        expect(profile.report.test.median).toBeLessThan(0.01);
        expect(profile.characteristics.matrix / matrix).toBeCloseTo(1, 1);
      },
    ),
    { numRuns: 3 },
  );
});

test("a fit to measured operators of a processor predicts products of other shapes within 5 %", () => {
  const profile = calibrate({ measurements: text, accelerator: core, precision: "fp32" });
  const errors = new Map(profile.report.kinds.map((k) => [k.kind, k]));
  expect(errors.get("gemm")!.test.n).toBeGreaterThan(30);
  expect(errors.get("gemm")!.test.median).toBeLessThan(0.05);
  expect(profile.report.test.median).toBeLessThan(0.08);
  // Measured in the train part only: no error is claimed for what was not put aside.
  expect(profile.report.train.n + profile.report.test.n).toBe(parseMeasurements(text).length);
});

test("no shape is fitted and judged at once, and the order of lines does not matter", () => {
  const all = parseMeasurements(text);
  const one = calibrate({ measurements: all, accelerator: core, precision: "fp32" });
  const other = calibrate({
    measurements: all.toReversed(),
    accelerator: core,
    precision: "fp32",
  });
  expect(other.report.test.n).toBe(one.report.test.n);
  expect(other.characteristics.matrix).toBeCloseTo(one.characteristics.matrix, 6);
  const none = calibrate({ measurements: all, accelerator: core, precision: "fp32", testShare: 0 });
  expect(none.report.test.n).toBe(0);
});

test("a profile prices steps as the estimator's pricer", () => {
  const real = { ...characteristics(a100), matrix: 0.4 };
  const slow = rooflinePricer(a100, "bf16", { characteristics: real });
  const measurements = operators().map((operator) => ({
    operator,
    seconds: slow.operator(operator),
  }));
  const profile = calibrate({ measurements, accelerator: a100, precision: "bf16" });
  const model = defineModel({ layers: 1, hidden: 1024, heads: 16, vocab: 32_000, context: 1024 });
  const plan = definePlan(model, { globalBatch: 1 });
  const cluster = defineCluster({ host: "dgx-a100-80", hosts: 1 });
  const by = (pricer?: ReturnType<typeof profilePricer>): number => {
    const e = estimate({ model, plan, cluster, ...(pricer === undefined ? {} : { pricer }) });
    if (!e.ok) throw new Error(e.reason);
    return e.breakdown.compute;
  };
  const priced = by(profilePricer(profile, { outside: "extrapolate" }));
  const truth = by(slow);
  expect(Math.abs(priced / truth - 1)).toBeLessThan(0.02);
});

const profile = calibrate({ measurements: text, accelerator: core, precision: "fp32" });

function product(m: number, n: number, k: number): Operator {
  return {
    key: `gemm/fp32/forward/1x${m}x${n}x${k}`,
    kind: "gemm",
    form: "fp32",
    pass: "forward",
    shape: [1, m, n, k],
    flops: 2 * m * n * k,
    bytes: 4 * (m * n + m * k + n * k),
    count: 1,
  };
}

test("what was not measured is flagged with the reason and refused unless extrapolation is asked for", () => {
  const inside = product(200, 300, 300);
  const outside = product(200, 65_536, 300);
  expect(profileSupports(profile, inside)).toEqual({ ok: true });
  expect(profileSupports(profile, outside)).toMatchObject({
    ok: false,
    reason: expect.stringContaining("n 65536 is outside the measured"),
  });
  const strict = profilePricer(profile);
  expect(strict.operator(inside)).toBeGreaterThan(0);
  expect(() => strict.operator(outside)).toThrow(/outside the measured .*"extrapolate"/);
  expect(() => strict.operator({ ...inside, key: "x", form: "bf16" })).toThrow(
    /nothing was measured of gemm\/bf16/,
  );
  expect(profilePricer(profile, { outside: "extrapolate" }).operator(outside)).toBeGreaterThan(
    strict.operator(inside),
  );
});

test("a hole in the middle of what was measured is no support", () => {
  const at = (n: number): Measurement => ({ operator: product(n, n, n), seconds: n ** 3 / 2e10 });
  const p = calibrate({
    measurements: [16, 20, 24, 28, 4096, 4500, 5000, 5500].map(at),
    accelerator: core,
    precision: "fp32",
    testShare: 0,
  });
  expect(profileSupports(p, product(18, 18, 18)).ok).toBe(true);
  expect(profileSupports(p, product(300, 300, 300))).toMatchObject({
    reason: expect.stringContaining("from the nearest measured shape"),
  });
});

test("a profile survives JSON", () => {
  const copy = JSON.parse(JSON.stringify(profile)) as typeof profile;
  const op = product(200, 300, 300);
  expect(profilePricer(copy).operator(op)).toBe(profilePricer(profile).operator(op));
});

test("JSON lines and CSV, keys and columns say the same", () => {
  const [csv] = parseMeasurements(
    "kind,form,pass,shape,seconds\ngemm,bf16,forward,1x128x256x64,1e-5\n",
  );
  const [json] = parseMeasurements(
    '{"kind":"gemm","form":"bf16","pass":"forward","shape":[1,128,256,64],"seconds":1e-5}',
  );
  const [key] = parseMeasurements(
    "# by key\r\nkey,seconds\r\n\r\ngemm/bf16/forward/1x128x256x64,1e-5",
  );
  expect(json).toEqual(csv);
  expect(key).toEqual(csv);
  expect(csv!.operator).toMatchObject({
    flops: 2 * 128 * 256 * 64,
    bytes: 2 * (128 * 256 + 64 * 384),
  });
});

test("flops and bytes that follow from a shape are those of the workload's operators", () => {
  for (const o of operators(128).filter((x) => x.kind === "gemm" && x.pass === "input-gradient")) {
    const [m] = parseMeasurements(`key,seconds\n${o.key},1`);
    expect(m!.operator.flops).toBe(o.flops);
    expect(m!.operator.bytes).toBe(o.bytes);
  }
  for (const o of operators(128).filter((x) => x.kind === "attention")) {
    const [m] = parseMeasurements(`key,seconds\n${o.key},1`);
    // The workload counts the mask's rounding and the softmax's sums by a few operations more.
    expect(m!.operator.flops / o.flops).toBeCloseTo(1, 2);
    expect(m!.operator.bytes / o.bytes).toBeCloseTo(1, 2);
  }
});

test.each([
  ["", "measurements: no measurements"],
  ["key,seconds", "0 different shapes"],
  ["key,time\nx,1", 'measurements:1: unknown field "time"'],
  ["key\nx", "measurements:1: the header key has no column seconds"],
  ["key,seconds\ngemm/bf16/forward,1", "measurements:2: key"],
  ["key,seconds\ngemm/bf16/forward/1x2x3x4", "measurements:2: 1 cells where the header has 2"],
  ["key,seconds\ngemm/bf16/forward/1x2x3,1", 'measurements:2: shape "1x2x3" of a gemm must be 4'],
  ["key,seconds\ngemm/bf16/forward/1x0x3x4,1", "measurements:2: shape"],
  ["key,seconds\ngemm/bf16/sideways/1x2x3x4,1", 'measurements:2: pass "sideways"'],
  ["key,seconds\nfft/bf16/forward/1x2x3x4,1", 'measurements:2: kind "fft" is none of gemm'],
  ["key,seconds\n\ngemm/bf16/forward/1x2x3x4,0", "measurements:3: seconds 0 must be above 0"],
  ["key,seconds\ngemm/bf16/forward/1x2x3x4,-1", "measurements:2: seconds"],
  ["key,seconds\ngemm/bf16/forward/1x2x3x4,NaN", "measurements:2: seconds"],
  [
    "key,seconds\nnorm/rmsnorm/forward/2x4,1",
    "measurements:2: a norm of form rmsnorm needs its bytes",
  ],
  ['{"key":"gemm/bf16/forward/1x2x3x4","seconds":1}\n{', "measurements:2: not JSON"],
  ['{"seconds":1}', "measurements:1: neither key nor kind is given"],
  ['{"key":"gemm/bf16/forward/1x2x3x4","second":1}', "did you mean seconds?"],
])("%j is refused with line and reason", (bad, reason) => {
  expect(() => calibrate({ measurements: bad, accelerator: core, precision: "fp32" })).toThrow(
    reason,
  );
});

test("a device without the precision and a share that is none are refused", () => {
  expect(() => calibrate({ measurements: text, accelerator: core, precision: "fp16" })).toThrow(
    "no fp16 arithmetic",
  );
  expect(() =>
    calibrate({ measurements: text, accelerator: core, precision: "fp32", testShare: 1 }),
  ).toThrow("testShare 1 must be in [0, 1)");
});
