import {
  dequantize,
  e4m3Max,
  fromBf16,
  fromE4m3,
  quantize,
  toBf16,
  toE4m3,
  unitRoundoff,
} from "@trireme/collectives";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Ranks, values } from "./ranks.ts";

const threads = new Ranks();
afterAll(() => threads.stop());

test("all 256 E4M3 bytes come back, and every number goes to the nearest of them", () => {
  const finite = Array.from({ length: 256 }, (_, byte) => byte).filter(
    (byte) => !Number.isNaN(fromE4m3(byte)),
  );
  expect(finite).toHaveLength(254);
  for (const byte of finite) expect(toE4m3(fromE4m3(byte))).toBe(byte);
  expect([fromE4m3(0x7e), fromE4m3(0x01), fromE4m3(0x08)]).toEqual([448, 2 ** -9, 2 ** -6]);
  expect([toE4m3(1e9), toE4m3(-Infinity), toE4m3(Number.NaN), toE4m3(0.4 * 2 ** -9)]).toEqual([
    0x7e, 0xfe, 0x7f, 0,
  ]);
  const sorted = finite.map(fromE4m3);
  fc.assert(
    fc.property(fc.double({ min: -500, max: 500, noNaN: true }), (x) => {
      const got = Math.abs(fromE4m3(toE4m3(x)) - x);
      expect(got).toBe(Math.min(...sorted.map((v) => Math.abs(v - x))));
    }),
  );
});

test("bf16 rounds to nearest, ties to even, and keeps infinities and NaN", () => {
  const one = (x: number): number => fromBf16(toBf16(Float32Array.of(x)))[0]!;
  expect([1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -0, Infinity].map(one)).toEqual([
    1,
    1,
    1 + 2 ** -6,
    -0,
    Infinity,
  ]);
  expect(one(Number.NaN)).toBeNaN();
  fc.assert(
    fc.property(
      fc.float({
        noNaN: true,
        noDefaultInfinity: true,
        min: Math.fround(1e-30),
        max: Math.fround(1e30),
      }),
      (x) => {
        expect(Math.abs(one(x) - x)).toBeLessThanOrEqual(unitRoundoff.bf16 * x);
      },
    ),
  );
});

test.each(["per-token", "per-channel"] as const)(
  "FP8 with %s scales errs by at most 1/16 of a value, or 2^-10 of the scale",
  (scaling) => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 5 }),
        fc.infiniteStream(fc.float({ noNaN: true, min: -1e6, max: 1e6 })),
        (tokens, channels, stream) => {
          const data = Float32Array.from(
            { length: tokens * channels },
            () => stream.next().value as number,
          );
          const payload = quantize(data, { tokens, channels, scaling, group: 4 });
          expect(payload.scales).toHaveLength(
            scaling === "per-token" ? tokens : Math.ceil(tokens / 4) * channels,
          );
          const back = dequantize(payload);
          data.forEach((x, i) => {
            const token = Math.floor(i / channels);
            const scale =
              payload.scales[
                scaling === "per-token" ? token : Math.floor(token / 4) * channels + (i % channels)
              ]!;
            // Half a unit in the last place, or of the smallest subnormal; f32 scales round by 2^-24.
            const bound =
              Math.max(unitRoundoff.e4m3 * Math.abs(x), scale * 2 ** -10) * (1 + 2 ** -20);
            expect(Math.abs(back[i]! - x)).toBeLessThanOrEqual(bound);
          });
        },
      ),
    );
    expect(() => quantize(new Float32Array(5), { tokens: 2, channels: 3, scaling })).toThrow(
      "must be 6",
    );
    expect(dequantize(quantize(new Float32Array(6), { tokens: 2, channels: 3, scaling }))).toEqual(
      new Float32Array(6),
    );
    expect(e4m3Max).toBe(448);
  },
);

test("compressed reduce-scatters stay within their bounds of FP32, and round once, not at each hop", async () => {
  const outcomes = values(
    await threads.run<{ bf16: number; ring: number; fp8: number; gathered: number }>(
      "compressed",
      4,
    ),
  );
  for (const { bf16, fp8 } of outcomes) {
    // Errors over the sum of magnitudes: one rounding of each term, and n - 1 additions in f32.
    expect(bf16).toBeLessThanOrEqual(unitRoundoff.bf16 + 4 * unitRoundoff.f32);
    expect(fp8).toBeLessThanOrEqual(unitRoundoff.e4m3 + 2 ** -9);
  }
  const sum = (key: "bf16" | "ring"): number => outcomes.reduce((a, o) => a + o[key], 0);
  expect(sum("bf16")).toBeLessThan(sum("ring"));
});
