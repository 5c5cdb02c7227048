/**
 * Quantities in a run description: a plain number in SI units, or text with the unit people write
 * (`80 GiB`, `400 Gbit/s`, `5 us`, `312 TFLOP/s`).
 */
import { z } from "zod";

/** What is measured; the value is in bytes, bytes/s, FLOP/s or seconds. */
export type Dimension = "size" | "bandwidth" | "arithmetic" | "time";

const decimal: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
};
const binary: Readonly<Record<string, number>> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};
const spans: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  min: 60,
  h: 3600,
  d: 86_400,
};

const examples: Readonly<Record<Dimension, string>> = {
  size: "80 GiB",
  bandwidth: "400 Gbit/s",
  arithmetic: "312 TFLOP/s",
  time: "5 us",
};

/** Reads `80 GiB` and the like as SI; undefined when the text is no quantity of that dimension. */
export function parseQuantity(text: string, dimension: Dimension): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([^\s\d].*?)?\s*$/i.exec(text);
  if (match === null) return undefined;
  const scale = scaleOf(match[2] ?? "", dimension);
  return scale === undefined ? undefined : Number(match[1]) * scale;
}

function scaleOf(unit: string, dimension: Dimension): number | undefined {
  switch (dimension) {
    case "time":
      return own(spans, unit);
    case "size":
      return prefixed(unit, /^(.*)B$/);
    case "arithmetic":
      return prefixed(unit, /^(.*)FLOP(?:S|\/s)$/);
    case "bandwidth":
      break;
  }
  const bits = prefixed(unit, /^(.*)(?:bit\/s|bps)$/);
  return bits === undefined ? prefixed(unit, /^(.*)B\/s$/) : bits / 8;
}

function prefixed(unit: string, pattern: RegExp): number | undefined {
  const prefix = pattern.exec(unit)?.[1];
  return prefix === undefined ? undefined : (own(decimal, prefix) ?? own(binary, prefix));
}

function own(scales: Readonly<Record<string, number>>, name: string): number | undefined {
  return Object.hasOwn(scales, name) ? scales[name] : undefined;
}

/** The schema of a positive quantity: accepts a number or text, gives the SI number. */
export function quantity(
  dimension: Dimension,
  description: string,
): z.ZodType<number, number | string> {
  const example = examples[dimension];
  return z
    .union([z.number().positive(), z.string()])
    .transform((value, context) => {
      if (typeof value === "number") return value;
      const si = parseQuantity(value, dimension);
      if (si !== undefined && si > 0 && Number.isFinite(si)) return si;
      context.addIssue({
        code: "custom",
        message: `must be a positive ${dimension === "arithmetic" ? "rate of arithmetic" : dimension} with its unit`,
        params: { suggestion: `for example ${example}` },
      });
      return z.NEVER;
    })
    .describe(description)
    .meta({ examples: [example] });
}
