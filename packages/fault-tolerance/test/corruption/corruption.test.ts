import { createRng, hours } from "@trireme/core";
import {
  type CorruptionModel,
  type FloatArray,
  type FloatFormat,
  CorruptionInjector,
  applyCorruption,
  bitClassOf,
  bitClasses,
  bitRange,
  drawBit,
  drawCorruption,
  firstNonFinite,
  fromBfloat16,
  replayDifference,
  toBfloat16,
} from "@trireme/fault-tolerance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const formats: readonly FloatFormat[] = ["float32", "bfloat16", "float16"];
const tensor = (format: FloatFormat, size: number, seed = 1): FloatArray => {
  const rng = createRng(seed);
  return format === "float32"
    ? Float32Array.from({ length: size }, () => rng.normal())
    : Uint16Array.from({ length: size }, () => toBfloat16(rng.normal()));
};

describe("bit classes", () => {
  it("cover every bit of a format once", () => {
    for (const [format, bits] of [
      ["float32", 32],
      ["bfloat16", 16],
      ["float16", 16],
    ] as const) {
      const count = bitClasses.map((each) => {
        const [from, to] = bitRange(format, each);
        for (let bit = from; bit < to; bit++) expect(bitClassOf(format, bit)).toBe(each);
        expect(bitClassOf(format, drawBit(format, each, createRng(4)))).toBe(each);
        return to - from;
      });
      expect(count.reduce((a, b) => a + b, 0)).toBe(bits);
      expect(() => bitClassOf(format, bits)).toThrow(`bits 0..${bits - 1}, but not ${bits}`);
    }
    expect(bitRange("bfloat16", "exponent")).toEqual([7, 15]);
    expect(bitRange("float16", "exponent")).toEqual([10, 15]);
  });

  it("bfloat16 words go to numbers and back, and numbers to the nearest word", () => {
    const wrong = Array.from({ length: 2 ** 16 }, (_, word) => word).filter((word) => {
      const back = toBfloat16(fromBfloat16(word));
      return Number.isNaN(fromBfloat16(word)) ? !Number.isNaN(fromBfloat16(back)) : back !== word;
    });
    expect(wrong).toEqual([]);
    // Half way between 1 and the next word, 1 + 2^-7: to the even one; just above: up.
    expect(fromBfloat16(toBfloat16(1 + 2 ** -8))).toBe(1);
    expect(fromBfloat16(toBfloat16(1 + 3 * 2 ** -8))).toBe(1 + 2 ** -6);
    expect(fromBfloat16(toBfloat16(1 + 2 ** -8 + 2 ** -20))).toBe(1 + 2 ** -7);
    expect(fromBfloat16(toBfloat16(3.4e38))).toBe(Infinity);
  });
});

describe("corruption", () => {
  const models: CorruptionModel[] = [
    ...bitClasses.map((bits) => ({ kind: "flip", bits }) as const),
    { kind: "multi-flip", count: 3 },
    { kind: "warp", bits: "exponent", period: 32 },
  ];

  it("by flips changes what it plans, and done twice nothing", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...formats),
        fc.constantFrom(...models),
        fc.integer({ min: 1, max: 100 }),
        fc.integer(),
        (format, model, size, seed) => {
          const values = tensor(format, size);
          const before = values.slice();
          const plan = drawCorruption(model, size, format, createRng(seed));
          expect(applyCorruption(values, plan)).toBe(plan.count);
          const { count, first } = replayDifference(values, before);
          expect([count, first]).toEqual([plan.count, plan.start]);
          applyCorruption(values, plan);
          expect(replayDifference(values, before).count).toBe(0);
        },
      ),
    );
  });

  it("strikes the bits of its class only, and all of them", () => {
    for (const format of formats) {
      for (const bits of bitClasses) {
        const rng = createRng(9);
        const seen = new Set<number>();
        for (let i = 0; i < 400; i++) {
          const { flip } = drawCorruption({ kind: "flip", bits }, 8, format, rng);
          const bit = Math.log2(flip);
          expect(bitClassOf(format, bit)).toBe(bits);
          seen.add(bit);
        }
        const [from, to] = bitRange(format, bits);
        expect(seen.size).toBe(to - from);
      }
    }
  });

  it("zeroes, holds bits of a run of values, and flips several bits of one value", () => {
    const values = tensor("float32", 10);
    const zero = drawCorruption({ kind: "zero" }, 10, "float32", createRng(1));
    applyCorruption(values, zero);
    expect(Object.is(values[zero.start], 0)).toBe(true);
    const stuck = drawCorruption(
      { kind: "stuck", bits: "sign", value: 1, length: 6 },
      10,
      "float32",
      createRng(2),
    );
    const positive = new Float32Array(10).fill(1);
    expect(applyCorruption(positive, stuck)).toBe(6);
    expect(applyCorruption(positive, stuck)).toBe(0);
    expect(positive.filter((x) => x === -1).length).toBe(6);
    const many = drawCorruption({ kind: "multi-flip", count: 32 }, 1, "float32", createRng(3));
    expect(many.flip).toBe(0xffff_ffff);
    const warp = drawCorruption(
      { kind: "warp", bits: "sign", period: 32 },
      100,
      "float32",
      createRng(5),
    );
    expect(warp.count).toBe(Math.ceil((100 - warp.start) / 32));
  });

  it("refuses what cannot be", () => {
    const draw =
      (model: CorruptionModel, size = 4) =>
      (): unknown =>
        drawCorruption(model, size, "bfloat16", createRng(0));
    expect(draw({ kind: "zero" }, 0)).toThrow("size = 0");
    expect(draw({ kind: "multi-flip", count: 17 })).toThrow("count = 17: use an integer of 1..16");
    expect(draw({ kind: "stuck", bits: "sign", value: 0, length: 5 })).toThrow("length = 5");
    expect(draw({ kind: "warp", bits: "sign", period: 0 })).toThrow("period = 0");
    const plan = drawCorruption({ kind: "zero" }, 4, "bfloat16", createRng(0));
    expect(() => applyCorruption(new Float32Array(4), plan)).toThrow("a Float32Array came");
    expect(() => applyCorruption(new Uint16Array(0), plan)).toThrow("the tensor has 0");
  });
});

describe("the finite guard", () => {
  it("finds NaN and infinity in every format, and nothing else", () => {
    const values = tensor("float32", 9);
    expect(firstNonFinite(values)).toBe(-1);
    values[7] = Number.NaN;
    values[3] = -Infinity;
    expect(firstNonFinite(values)).toBe(3);
    expect(firstNonFinite(Uint16Array.of(0x7f7f, 0xff80), "bfloat16")).toBe(1);
    expect(firstNonFinite(Uint16Array.of(0x7bff, 0xfbff, 0x7c01), "float16")).toBe(2);
    expect(firstNonFinite(new Float32Array(0))).toBe(-1);
    expect(() => firstNonFinite(values, "bfloat16")).toThrow("bfloat16 values are a Uint16Array");
  });
});

describe("the injector", () => {
  const visit = { target: "gemm-output", size: 64, format: "float32" } as const;
  const options = {
    seed: 1,
    targets: ["gemm-output"],
    model: { kind: "flip", bits: "exponent" },
    persistence: "transient",
  } as const;

  it("strikes as often as its rate says, in device hours or FLOP", () => {
    for (const [per, work] of [
      ["device-hour", hours(1)],
      ["flop", 1],
    ] as const) {
      const injector = new CorruptionInjector({ ...options, rate: { per, value: 0.05 } });
      let strikes = 0;
      for (let i = 0; i < 20_000; i++) {
        if (injector.visit({ ...visit, device: i % 8, work }) !== undefined) strikes++;
      }
      const p = -Math.expm1(-0.05);
      // Four binomial standard errors.
      const error = 4 * Math.sqrt(20_000 * p * (1 - p));
      expect(Math.abs(strikes - 20_000 * p)).toBeLessThan(error);
    }
  });

  it("goes on at a defective device till it is replaced, and leaves the others alone", () => {
    for (const [persistence, least, most] of [
      ["permanent", 1000, 1000],
      ["intermittent", 60, 140],
      ["transient", 0, 0],
    ] as const) {
      const rate = { per: "flop", value: 1 } as const;
      const injector = new CorruptionInjector({ ...options, persistence, rate, devices: [3] });
      expect(injector.visit({ ...visit, device: 3, work: 1e9 })).toBeDefined();
      expect(injector.visit({ ...visit, device: 4, work: 1e9 })).toBeUndefined();
      const other = { ...visit, target: "weight" } as const;
      expect(injector.visit({ ...other, device: 3, work: 1e9 })).toBeUndefined();
      let strikes = 0;
      for (let i = 0; i < 1000; i++) {
        if (injector.visit({ ...visit, device: 3, work: 0 }) !== undefined) strikes++;
      }
      expect(strikes).toBeGreaterThanOrEqual(least);
      expect(strikes).toBeLessThanOrEqual(most);
      injector.replace(3);
      expect(injector.visit({ ...visit, device: 3, work: 0 })).toBeUndefined();
    }
  });

  it("gives a device the same strikes whatever the others do", () => {
    const history = (devices: number[]): unknown[] => {
      const rate = { per: "flop", value: 0.3 } as const;
      const injector = new CorruptionInjector({ ...options, rate });
      return Array.from({ length: 40 }, () =>
        devices.map((device) => [device, injector.visit({ ...visit, device, work: 1 })] as const),
      ).map((each) => each.find(([device]) => device === 2)?.[1]);
    };
    expect(history([2])).toEqual(history([0, 1, 2, 3]));
    expect(history([2]).some((each) => each !== undefined)).toBe(true);
    const injector = new CorruptionInjector({ ...options, rate: { per: "flop", value: 1 } });
    expect(() => injector.visit({ ...visit, device: 0, work: -1 })).toThrow("work = -1");
    expect(() => new CorruptionInjector({ ...options, rate: { per: "flop", value: -1 } })).toThrow(
      "-1 corruptions per flop",
    );
  });
});
