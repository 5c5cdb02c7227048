/**
 * Fits what a device sustains to measured operators: the fractions and the gap that make
 * the sum of (predicted / measured − 1)² least. Each operator follows one fraction and the gap, so that for a given gap
 * every fraction is a search along a line of its own, and the gap is one more.
 */
import type { Seconds } from "@trireme/core";
import type { Characteristics } from "../characteristics.ts";
import { type Kernels, gaps, kernelTime, streamOf } from "../pricer.ts";
import type { Operator } from "@trireme/workload";
import type { Measurement } from "./measurement.ts";

/** Sets one fraction of the characteristics. */
interface Term {
  readonly set: (c: Characteristics, fraction: number) => Characteristics;
  /** A fraction of a peak is at most 1; a kernel whose operands stay in a cache beats the memory. */
  readonly most: number;
  readonly measurements: Measurement[];
}

/** The characteristics of least squares; what no measurement speaks of stays as it is. */
export function fitCharacteristics(
  kernels: Kernels,
  measurements: readonly Measurement[],
): Characteristics {
  // One share of the bandwidth for all memory-bound kernels bounds products and attention, and what has no share of its
  // own.
  const memory: Term = {
    set: (c, fraction) => ({ ...c, memory: fraction }),
    most: 1,
    measurements: measurements.filter((m) => isStream(m.operator)),
  };
  const terms = [memory, ...termsOf(measurements)];
  const start = kernels.characteristics;
  const at = (gap: Seconds): { c: Characteristics; loss: number } => {
    let c: Characteristics = { ...start, gap };
    let loss = 0;
    for (const term of terms) {
      if (term.measurements.length === 0) continue;
      const trial = (logFraction: number): number =>
        squares(
          { ...kernels, characteristics: term.set(c, Math.exp(logFraction)) },
          term.measurements,
        );
      const best = minimum(trial, Math.log(0.002), Math.log(term.most), 16);
      c = term.set(c, Math.exp(best));
      if (term !== memory) loss += trial(best);
    }
    return { c, loss };
  };
  const fastest = Math.min(...measurements.map((m) => m.seconds));
  // In fractions of the shortest measurement, which no gap outlasts.
  const gap = fastest * minimum((share) => at(fastest * share).loss, 0, 1, 6);
  return at(gap).c;
}

function squares(on: Kernels, measurements: readonly Measurement[]): number {
  const { gap } = on.characteristics;
  let sum = 0;
  for (const { operator, seconds } of measurements) {
    const alone = kernelTime(on, operator) + gap * gaps(on.accelerator, operator);
    sum += (alone / seconds - 1) ** 2;
  }
  return sum;
}

function termsOf(measurements: readonly Measurement[]): Term[] {
  const terms = new Map<string, Term>();
  for (const m of measurements) {
    const [name, set, most] = termOf(m.operator);
    const term = terms.get(name);
    if (term === undefined) terms.set(name, { set, most, measurements: [m] });
    else term.measurements.push(m);
  }
  // Fused grouped products follow two fractions; their own comes after that of the single ones.
  return [...terms].sort(([a], [b]) => order(a) - order(b)).map(([, term]) => term);
}

function order(name: string): number {
  return name === "grouped" ? 1 : 0;
}

function isStream(op: Operator): boolean {
  return op.kind !== "gemm" && op.kind !== "grouped-gemm" && op.kind !== "attention";
}

function termOf(op: Operator): [string, Term["set"], number] {
  if (op.kind === "grouped-gemm" && op.form.endsWith("-fused")) {
    return ["grouped", (c, grouped) => ({ ...c, grouped }), 1];
  }
  if (op.kind === "gemm" || op.kind === "grouped-gemm") {
    return /^(fp8|int8|fp4)/.test(op.form)
      ? ["quantised", (c, quantised) => ({ ...c, quantised }), 1]
      : ["matrix", (c, matrix) => ({ ...c, matrix }), 1];
  }
  if (op.kind === "attention") {
    const width = op.shape[4]! >= 96 ? "wide" : "narrow";
    const backward = op.pass === "input-gradient";
    return [`attention ${width} ${backward}`, attention(width, backward), 1];
  }
  const stream = streamOf(op);
  return [stream, (c, each) => ({ ...c, streaming: { ...c.streaming, [stream]: each } }), 16];
}

/** Attention alone of its own generation: what was measured is what runs. */
function attention(width: "wide" | "narrow", backward: boolean): Term["set"] {
  return (c, fraction) => {
    const [f, b] = c.attention[width];
    const pair = backward ? ([f, fraction] as const) : ([fraction, b] as const);
    return { ...c, attention: { ...c.attention, older: {}, [width]: pair } };
  };
}

const golden = (Math.sqrt(5) - 1) / 2;

/** Where `f` is least between two numbers: the best of some even steps, then golden section beside it. */
function minimum(f: (x: number) => number, low: number, high: number, steps: number): number {
  const width = (high - low) / steps;
  let best = low;
  let least = Infinity;
  for (let i = 0; i <= steps; i++) {
    const x = low + i * width;
    const y = f(x);
    if (y < least) {
      least = y;
      best = x;
    }
  }
  let [a, b] = [Math.max(low, best - width), Math.min(high, best + width)];
  for (let i = 0; i < 12; i++) {
    const [x, y] = [b - golden * (b - a), a + golden * (b - a)];
    if (f(x) < f(y)) b = y;
    else a = x;
  }
  const middle = (a + b) / 2;
  return f(middle) < least ? middle : best;
}
