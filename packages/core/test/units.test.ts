import { expect, test } from "vitest";
import {
  GB,
  GiB,
  Gbps,
  formatBandwidth,
  formatBytes,
  formatCount,
  formatEnergy,
  formatFlopRate,
  formatPercent,
  formatPower,
  formatSeconds,
  us,
} from "@trireme/core";

test("units are SI: GB is 1e9, GiB is 2^30, a 400 Gbit/s port carries 50 GB/s", () => {
  expect(GB(80)).toBe(80e9);
  expect(GiB(80)).toBe(80 * 2 ** 30);
  expect(Gbps(400)).toBe(50e9);
  expect(us(5)).toBeCloseTo(5e-6, 12);
});

test.each([
  [0, "0 s"],
  [5e-9, "5 ns"],
  [12.5e-6, "12.50 µs"],
  [999.99e-6, "1.000 ms"],
  [0.0031, "3.100 ms"],
  [29.02, "29.02 s"],
  [125, "2 min 5 s"],
  [119.97, "2 min 0 s"],
  [12_000, "3 h 20 min"],
  [706_000, "8 d 4 h"],
  [-125, "-2 min 5 s"],
  [Infinity, "Infinity"],
])("%d seconds print as %s", (t, text) => {
  expect(formatSeconds(t)).toBe(text);
});

test("sizes, rates, counts and fractions carry their unit", () => {
  expect(formatBytes(1536)).toBe("1.500 KiB");
  expect(formatBytes(80 * 2 ** 30)).toBe("80 GiB");
  expect(formatBytes(0)).toBe("0 B");
  expect(formatBandwidth(300e9)).toBe("300 GB/s");
  expect(formatFlopRate(312e12)).toBe("312 TFLOP/s");
  expect(formatCount(174.6e9)).toBe("174.6 G");
  expect(formatCount(999_960)).toBe("1.000 M");
  expect(formatCount(512)).toBe("512");
  expect(formatPower(657.1)).toBe("657.1 W");
  expect(formatPower(5.6e6)).toBe("5.600 MW");
  expect(formatEnergy(1210)).toBe("1.210 kJ");
  expect(formatEnergy(0.2)).toBe("0.200 J");
  expect(formatPercent(0.412)).toBe("41.2 %");
});
