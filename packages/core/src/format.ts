/** Numbers for people to read: three to four significant digits, the unit always beside them. */
import type { Bytes, BytesPerSecond, FlopsPerSecond, Joules, Seconds, Watts } from "./units.ts";

const decimal = ["", "k", "M", "G", "T", "P", "E"];
const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** Four significant digits at most, without a trailing exponent: 0.1234, 12.34, 1234. */
function digits(n: number): string {
  const a = Math.abs(n);
  if (!Number.isFinite(n)) return String(n);
  if (a >= 1000 || Number.isInteger(n)) return n.toFixed(0);
  return a >= 100 ? n.toFixed(1) : a >= 10 ? n.toFixed(2) : n.toFixed(3);
}

function scaled(n: number, base: number, prefixes: readonly string[], unit: string): string {
  let value = n;
  let power = 0;
  // Compares what would be printed, so that 999.96 k becomes 1 M and not "1000.0 k".
  while (Number(Math.abs(value).toFixed(1)) >= base && power < prefixes.length - 1) {
    value /= base;
    power++;
  }
  return `${digits(value)} ${prefixes[power]}${unit}`.trimEnd();
}

/** A size with a binary prefix: `80 GiB`, `1.500 KiB`. */
export function formatBytes(n: Bytes): string {
  return scaled(n, 1024, binary, "B");
}

/** A bandwidth with a decimal prefix: `300 GB/s`. */
export function formatBandwidth(n: BytesPerSecond): string {
  return scaled(n, 1000, decimal, "B/s");
}

/** A rate of arithmetic with a decimal prefix: `312 TFLOP/s`. */
export function formatFlopRate(n: FlopsPerSecond): string {
  return scaled(n, 1000, decimal, "FLOP/s");
}

/** A power with a decimal prefix: `657.1 W`, `5.600 MW`. */
export function formatPower(n: Watts): string {
  return scaled(n, 1000, decimal, "W");
}

/** An energy with a decimal prefix: `1.210 kJ`. */
export function formatEnergy(n: Joules): string {
  return scaled(n, 1000, decimal, "J");
}

/** A count with a decimal prefix: `174.6 G`, `512`. */
export function formatCount(n: number): string {
  return scaled(n, 1000, decimal, "");
}

/** A fraction as per cent with one decimal: `41.2 %`. */
export function formatPercent(fraction: number): string {
  return `${(fraction * 100).toFixed(1)} %`;
}

/** A time in the unit that fits: `12.50 µs`, `3.100 ms`, `29.02 s`, `2 min 5 s`, `3 h 20 min`, `8 d 4 h`. */
export function formatSeconds(t: Seconds): string {
  const a = Math.abs(t);
  if (!Number.isFinite(t)) return String(t);
  if (a === 0) return "0 s";
  if (a < 999.95e-9) return `${digits(t * 1e9)} ns`;
  if (a < 999.95e-6) return `${digits(t * 1e6)} µs`;
  if (a < 999.95e-3) return `${digits(t * 1e3)} ms`;
  if (a < 119.95) return `${digits(t)} s`;
  const sign = t < 0 ? "-" : "";
  const [size, unit, smallSize, smallUnit] =
    a < 7199.5
      ? ([60, "min", 1, "s"] as const)
      : a < 172_770
        ? ([3600, "h", 60, "min"] as const)
        : ([86_400, "d", 3600, "h"] as const);
  const small = Math.round(a / smallSize);
  const perLarge = size / smallSize;
  return `${sign}${Math.floor(small / perLarge)} ${unit} ${small % perLarge} ${smallUnit}`;
}
