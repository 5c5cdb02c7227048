/**
 * Executes schedules with vocabulary passes on numbers: each rank has its rows of the head and computes by Algorithm 1 or 2
 * (arXiv 2411.05288 §4) what its row says. Gradients must be those of one rank that holds the whole vocabulary.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type VocabularySchedule, addVocabulary, actionAt, entryCode } from "@trireme/schedulers";
import { trainingSchedule } from "./random-schedule.ts";

const hidden = 2;
const rowsOfRank = 2;
const head = (row: number): number[] => [Math.sin(1 + 3 * row), Math.cos(2 + row)];
const scale = (stage: number): number => 0.6 + 0.1 * stage;
const input = (m: number): number[] => [Math.sin(1 + m), Math.cos(m)];
const label = (m: number, vocab: number): number => (7 * m + 3) % vocab;
const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const zeros = (): number[] => [0, 0];

interface Gradients {
  /** Of each stage's scale, and of each row of the head. */
  readonly scales: number[];
  readonly head: number[][];
}

/** One rank: y = tanh(scale x) through all stages, softmax over the whole vocabulary, cross entropy. */
function reference(stages: number, M: number, vocab: number): Gradients {
  const out = none(stages, vocab);
  for (let m = 0; m < M; m++) {
    const xs = [input(m)];
    for (let s = 0; s < stages; s++) xs.push(xs[s]!.map((x) => Math.tanh(scale(s) * x)));
    const y = Array.from({ length: vocab }, (_, v) => dot(xs[stages]!, head(v)));
    const most = Math.max(...y);
    const sum = y.reduce((a, b) => a + Math.exp(b - most), 0);
    const g = y.map((a, v) => Math.exp(a - most) / sum - (v === label(m, vocab) ? 1 : 0));
    let d = zeros().map((_, i) => g.reduce((a, b, v) => a + b * head(v)[i]!, 0));
    for (const [v, row] of out.head.entries()) {
      for (let i = 0; i < hidden; i++) row[i]! += g[v]! * xs[stages]![i]!;
    }
    for (let s = stages - 1; s >= 0; s--) d = backward(out, s, xs[s]!, d);
  }
  return out;
}

function none(stages: number, vocab: number): Gradients {
  return {
    scales: Array.from({ length: stages }, () => 0),
    head: Array.from({ length: vocab }, zeros),
  };
}

function slopes(s: number, x: readonly number[]): number[] {
  return x.map((a) => 1 - Math.tanh(scale(s) * a) ** 2);
}

function backward(out: Gradients, s: number, x: number[], d: number[]): number[] {
  out.scales[s]! += slopes(s, x).reduce((sum, k, i) => sum + k * x[i]! * d[i]!, 0);
  return slopes(s, x).map((k, i) => k * scale(s) * d[i]!);
}

/** What one rank has of a microbatch between S and T. */
interface Part {
  readonly most: number;
  readonly sum: number;
  readonly softmax: number[];
}

/** Runs the rows, each rank as far as its inputs let it. */
function run(v: VocabularySchedule): Gradients {
  const { schedule: s, barriers } = v;
  const vocab = rowsOfRank * s.ranks;
  const out = none(s.stages, vocab);
  const [xs, ds] = [new Map<number, number[]>(), new Map<number, number[]>()];
  const key = (stage: number, m: number): number => stage * s.microbatches + m;
  for (let m = 0; m < s.microbatches; m++) xs.set(key(0, m), input(m));
  const parts = Array.from({ length: s.ranks }, () => new Map<number, Part>());
  // Of each microbatch, what of the gradient the ranks have added up, and how many.
  const sums = new Map<number, { d: number[]; ranks: number }>();
  const own = (r: number): number[] =>
    Array.from({ length: rowsOfRank }, (_, i) => r * rowsOfRank + i);
  const scaleOf = (r: number, m: number): number => {
    const all = parts.map((p) => p.get(m)!);
    const most = Math.max(...all.map((p) => p.most));
    const sum = all.reduce((a, p) => a + p.sum * Math.exp(p.most - most), 0);
    const p = parts[r]!.get(m)!;
    return (p.sum * Math.exp(p.most - most)) / sum;
  };
  const add = (m: number, d: number[]): void => {
    const known = sums.get(m) ?? { d: zeros(), ranks: 0 };
    sums.set(m, { d: known.d.map((a, i) => a + d[i]!), ranks: known.ranks + 1 });
    if (known.ranks + 1 === s.ranks) ds.set(key(s.stages - 1, m), sums.get(m)!.d);
  };
  const weighed = (r: number, m: number, of: number[]): number[] =>
    zeros().map((_, i) =>
      own(r).reduce(
        (a, row, n) => a + (of[n]! - (row === label(m, vocab) ? 1 : 0)) * head(row)[i]!,
        0,
      ),
    );
  const pass = (r: number, kind: number, m: number): boolean => {
    const x = xs.get(key(s.stages, m));
    if (x === undefined) return false;
    if (kind === entryCode.S) {
      const y = own(r).map((row) => dot(x, head(row)));
      const most = Math.max(...y);
      const sum = y.reduce((a, b) => a + Math.exp(b - most), 0);
      parts[r]!.set(m, { most, sum, softmax: y.map((a) => Math.exp(a - most) / sum) });
      // Algorithm 2: A and B are there, and the exchange behind the last S scales and sums them.
      if (barriers === 1 && parts.every((p) => p.has(m))) {
        for (let k = 0; k < s.ranks; k++) {
          add(
            m,
            weighed(
              k,
              m,
              parts[k]!.get(m)!.softmax.map((a) => a * scaleOf(k, m)),
            ),
          );
        }
      }
      return true;
    }
    if (!parts.every((p) => p.has(m))) return false;
    const softmax = parts[r]!.get(m)!.softmax.map((a) => a * scaleOf(r, m));
    for (const [n, row] of own(r).entries()) {
      const g = softmax[n]! - (row === label(m, vocab) ? 1 : 0);
      for (let i = 0; i < hidden; i++) out.head[row]![i]! += g * x[i]!;
    }
    if (barriers === 2) add(m, weighed(r, m, softmax));
    return true;
  };
  const act = (i: number): boolean => {
    const { stage, kind, microbatch: m } = actionAt(s, i);
    const x = xs.get(key(stage, m));
    if (x === undefined) return false;
    if (kind === "F") {
      const to = stage === s.stages - 1 ? key(s.stages, m) : key(stage + 1, m);
      xs.set(
        to,
        x.map((a) => Math.tanh(scale(stage) * a)),
      );
      return true;
    }
    const d = ds.get(key(stage, m));
    if (d === undefined) return false;
    const spare = none(s.stages, vocab);
    const gradient = backward(kind === "I" ? spare : out, stage, x, d);
    if (kind !== "W" && stage > 0) ds.set(key(stage - 1, m), gradient);
    return true;
  };
  const at = v.offsets.slice(0, s.ranks);
  for (let moved = true; moved;) {
    moved = false;
    for (let r = 0; r < s.ranks; r++) {
      for (; at[r]! < v.offsets[r + 1]!; at[r]!++) {
        const i = at[r]!;
        const of = v.of[i]!;
        if (!(v.kind[i] === entryCode.action ? act(of) : pass(r, v.kind[i]!, of))) break;
        moved = true;
      }
    }
  }
  for (let r = 0; r < s.ranks; r++) expect(at[r]).toBe(v.offsets[r + 1]);
  return out;
}

const suitable = trainingSchedule.filter((s) => s.directions === 1 && !s.overlap.includes(1));

test("every rank's part of the vocabulary gives the gradients of the whole, by either algorithm", () => {
  fc.assert(
    fc.property(suitable, fc.constantFrom(1, 2), (s, barriers) => {
      const v = addVocabulary(s, { barriers });
      const [a, b] = [run(v), reference(s.stages, s.microbatches, rowsOfRank * s.ranks)];
      // Sums in another order.
      for (const [i, g] of b.scales.entries()) expect(a.scales[i]).toBeCloseTo(g, 10);
      for (const [i, row] of b.head.entries()) {
        for (let h = 0; h < hidden; h++) expect(a.head[i]![h]).toBeCloseTo(row[h]!, 10);
      }
    }),
    { numRuns: 60 },
  );
});
