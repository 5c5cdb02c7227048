/** What must end, or be refused by name, however odd the input. */
import {
  closedForm,
  closedFormCost,
  collectiveTime,
  contend,
  createPlan,
  dequantize,
  glooCost,
  pairwiseAllToAll,
  quantize,
  ringAllReduce,
  testedSizes,
} from "@trireme/collectives";
import { checkMsccl, verifyMsccl } from "@trireme/collectives/msccl";
import { defineCluster } from "@trireme/topology";
import { describe, expect, it } from "vitest";

const cluster = defineCluster({ host: "dgx-h100", hosts: 2 });

describe("contention", () => {
  const plan = ringAllReduce(2);
  it.each([
    ["start", Number.NaN],
    ["start", Infinity],
    ["start", -1],
    ["bytes", Number.NaN],
    ["bytes", -1],
    ["bytes", Infinity],
  ])("of a %s of %d is refused, not waited for", (name, value) => {
    const one = { plan, devices: [0, 1], bytes: 8, [name]: value };
    expect(() => contend({ cluster, collectives: [one] })).toThrow(
      `${name} = ${value} of collective 0 must be 0 or more, and finite`,
    );
  });
});

describe("tested sizes", () => {
  it("end", () => {
    expect(() => testedSizes({ from: 1, to: Infinity, factor: 2 })).toThrow("never end");
    expect(() => testedSizes({ from: 2 ** 53, to: 2 ** 54, step: 1 })).toThrow("more than 1000000");
    expect(() => testedSizes({ from: 0, to: 1e12, step: 1 })).toThrow("more than 1000000");
    expect(testedSizes({ from: 8, to: 8, factor: 2 })).toEqual([8]);
  });
});

describe("plans", () => {
  it("of more rows or chunks than can be numbered are refused before memory is taken", () => {
    expect(() => ringAllReduce(1e6)).toThrow(
      "all-reduce by ring over 1000000 ranks has 1999998000000 rows, at most 268435456",
    );
    expect(() => pairwiseAllToAll(50_000)).toThrow("2500000000 chunks, at most 2147483647");
    expect(() =>
      createPlan({ operation: "all-to-all", algorithm: "bruck", ranks: 50_000 }),
    ).toThrow("2500000000 chunks");
  });
  it("of no operation are refused with the nearest", () => {
    const plan = { operation: "all-reducee" as never, algorithm: "ring", ranks: 2 };
    expect(() => createPlan(plan)).toThrow(
      'no operation "all-reducee"; did you mean "all-reduce"?',
    );
    expect(() => createPlan({ ...plan, operation: "toString" as never })).toThrow("known are");
  });
});

describe("closed forms", () => {
  const good = { ranks: 8, bytes: 1, alpha: 1, beta: 1 };
  it.each([
    ["ranks", 0],
    ["ranks", Number.NaN],
    ["ranks", 1.5],
    ["bytes", -1],
    ["bytes", Number.NaN],
    ["alpha", Number.NaN],
    ["beta", -1],
    ["gamma", Infinity],
    ["base", 1],
    ["perHost", 0],
    ["pipeline", 0],
  ])("of %s = %d are refused", (name, value) => {
    const options = { ...good, [name]: value };
    expect(() => closedForm("all-reduce", "ring", options)).toThrow(
      new RegExp(`${name}.*${value}`),
    );
    expect(() => closedFormCost("all-reduce", "bcube", options)).toThrow(String(value));
  });
  it("of hosts that are no whole number are refused with the nearest", () => {
    const outer = { alpha: 1, beta: 1 };
    expect(() =>
      closedForm("all-reduce", "hierarchical", { ...good, ranks: 9, perHost: 4, outer }),
    ).toThrow("perHost = 4 must divide 9 ranks; the nearest that does is 3");
  });
  it("of Gloo are of ranks, bytes and a base", () => {
    expect(() => glooCost("ring", 0, 1)).toThrow("ranks 0");
    expect(() => glooCost("ring", 2, Number.NaN)).toThrow("bytes NaN");
    expect(() => glooCost("bcube", 8, 1, 1)).toThrow("base 1");
  });
});

describe("the time of a collective", () => {
  it("of a send is between two devices", () => {
    const send = (ranks: number[]) => () =>
      collectiveTime({ operation: "send", bytes: 1, cluster, ranks });
    expect(send([0, 1])()).toBeGreaterThan(0);
    expect(send([0, 1, 2])).toThrow("a send has 2 ends, but 3 devices came");
  });
  it.each([0, -1, Number.NaN, 1.5])("of %d devices a thread is refused", (devicesPerThread) => {
    const options = { operation: "all-reduce", bytes: 1, cluster, ranks: [0, 1] } as const;
    expect(() => collectiveTime({ ...options, devicesPerThread })).toThrow(
      `devicesPerThread ${devicesPerThread} must be`,
    );
  });
  it("takes more domains than a call takes arguments", () => {
    const many = defineCluster({ host: "dgx-h100", hosts: 200_000 });
    const ranks = Array.from({ length: 200_000 }, (_, host) => host * 8);
    const time = collectiveTime({ operation: "all-reduce", bytes: 1e9, cluster: many, ranks });
    expect(time).toBeGreaterThan(0);
  });
});

describe("MSCCL programs", () => {
  const program = (gpu: object, count = 1) => ({
    name: "x",
    protocol: "Simple",
    collective: "allreduce" as const,
    inPlace: true,
    chunksPerLoop: 1,
    channels: 1,
    minBytes: 0,
    maxBytes: 0,
    gpus: Array.from({ length: count }, () => ({
      input: 1,
      output: 1,
      scratch: 0,
      blocks: [],
      ...gpu,
    })),
  });
  it.each([
    ["input", "i", 1e15],
    ["output", "o", -1],
    ["scratch", "s", 2 ** 53],
  ])("of such %s chunks are refused, not followed one by one", (name, buffer, value) => {
    expect(() => checkMsccl(program({ [name]: value }))).toThrow(
      `gpu 0: ${buffer}_chunks="${value}" must be in 0..1000000`,
    );
  });
  it("of no GPU are refused", () => {
    expect(() => checkMsccl(program({}, 0))).toThrow("it has no gpu");
    expect(verifyMsccl(program({})).ok).toBe(true);
  });
});

describe("FP8", () => {
  it("has whole tokens and channels, and the scales of its shape", () => {
    const options = { tokens: -2, channels: -3, scaling: "per-token" } as const;
    expect(() => quantize(new Float32Array(6), options)).toThrow("use whole numbers");
    const payload = quantize(new Float32Array(6), { ...options, tokens: 2, channels: 3 });
    expect(dequantize(payload).length).toBe(6);
    expect(() => dequantize({ ...payload, tokens: 3 })).toThrow("6 values for 3 tokens");
    expect(() => dequantize({ ...payload, scales: new Float32Array(1) })).toThrow("1 scales of 2");
    expect(() => dequantize({ ...payload, group: 0 })).toThrow("groups of 0");
  });
});
