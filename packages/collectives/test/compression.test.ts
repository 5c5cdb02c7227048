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

test("the kernels give what the definitions give, bit for bit, at every length", () => {
  const special = [0, -0, Number.NaN, Infinity, -Infinity, 2 ** -140, 1 + 2 ** -8, 3.4e38];
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.float(), fc.constantFrom(...special)), { maxLength: 70 }),
      (numbers) => {
        const data = Float32Array.from(numbers);
        const bits = new Uint32Array(data.buffer);
        const want = Array.from(bits, (b) => {
          if ((b & 0x7fffffff) > 0x7f800000) return (b >>> 16) | 64;
          return ((b + 0x7fff + ((b >>> 16) & 1)) >>> 16) & 0xffff;
        });
        expect(Array.from(toBf16(data))).toEqual(want);
        const widened = new Uint32Array(fromBf16(Uint16Array.from(want)).buffer);
        expect(Array.from(widened)).toEqual(want.map((w) => (w << 16) >>> 0));
      },
    ),
  );
});

test.each(["per-token", "per-channel"] as const)(
  "FP8 codes with %s scales are the nearest to the quotients, over blocks and groups",
  (scaling) => {
    // More than one block of the kernel by rows and by columns, and groups that end within a block.
    for (const [tokens, channels, group] of [
      [7, 5, 3],
      [300, 257, 128],
      [3, 70_001, 2],
      [1, 1, 1],
      [0, 4, 2],
      [4, 0, 2],
    ] as const) {
      const data = Float32Array.from({ length: tokens * channels }, (_, i) =>
        Math.fround(Math.sin(i * 1.7) * 10 ** ((i % 13) - 6)),
      );
      const payload = quantize(data, { tokens, channels, scaling, group });
      const scaleOf = (i: number): number => {
        const token = Math.floor(i / channels);
        const at =
          scaling === "per-token" ? token : Math.floor(token / group) * channels + (i % channels);
        return payload.scales[at]!;
      };
      const back = dequantize(payload);
      let wrong = 0;
      for (let i = 0; i < data.length; i++) {
        const code = toE4m3(Math.fround(data[i]! / scaleOf(i)));
        if (payload.data[i] !== code) wrong++;
        if (back[i] !== Math.fround(fromE4m3(code) * scaleOf(i))) wrong++;
      }
      expect(wrong, `${tokens} x ${channels}`).toBe(0);
    }
  },
);

test("FP8 keeps NaN apart: it has its own code and no part in a scale", () => {
  const data = Float32Array.of(Number.NaN, 2, -1, 0.5, Number.NaN);
  const { data: codes, scales } = quantize(data, { tokens: 1, channels: 5, scaling: "per-token" });
  expect(scales[0]).toBe(Math.fround(2 / e4m3Max));
  expect([codes[0], codes[1], codes[4]]).toEqual([0x7f, 0x7e, 0x7f]);
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
