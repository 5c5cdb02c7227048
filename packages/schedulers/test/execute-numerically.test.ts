/**
 * Executes lowered schedules on numbers: each rank runs its row, channels between two ranks have no
 * tags and deliver in order. Loss and gradients must be those of one rank without a pipeline.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Schedule, actionsOf, forwardOnly, lower } from "@trireme/schedulers";
import { anySchedule } from "./random-schedule.ts";

/** Stage s of the model: y = tanh(w x) + x; two directions hold the same weights. */
const weight = (model: number): number => 0.3 + 0.17 * model;
const input = (m: number): number => Math.sin(1 + m);

interface Result {
  readonly loss: number[];
  readonly gradient: number[];
}

/** Gradients of Σ y²/2 over the microbatches, stage by stage. */
function reference(stages: number, microbatches: number, backward: boolean): Result {
  const loss: number[] = [];
  const gradient = Array.from({ length: stages }, () => 0);
  for (let m = 0; m < microbatches; m++) {
    const xs = [input(m)];
    for (let s = 0; s < stages; s++) xs.push(Math.tanh(weight(s) * xs[s]!) + xs[s]!);
    loss.push(xs[stages]! ** 2 / 2);
    let d = xs[stages]!;
    for (let s = stages - 1; backward && s >= 0; s--) {
      const slope = 1 - Math.tanh(weight(s) * xs[s]!) ** 2;
      gradient[s]! += d * slope * xs[s]!;
      d *= 1 + slope * weight(s);
    }
  }
  return { loss, gradient };
}

function run(s: Schedule): Result {
  const chain = s.stages / s.directions;
  const channels = new Map<string, number[]>();
  const channel = (from: number, to: number): number[] => {
    const key = `${from}>${to}`;
    if (!channels.has(key)) channels.set(key, []);
    return channels.get(key)!;
  };
  const rows = Array.from({ length: s.ranks }, (_, r) => [...actionsOf(s, r)]);
  // Values on a rank: x, y of a forward; d given to a backward, d it made.
  const values = new Map<string, number>();
  const get = (what: string, stage: number, m: number): number => {
    const v = values.get(`${what}${stage},${m}`);
    if (v === undefined) throw new Error(`${what}${stage},${m} is not there`);
    return v;
  };
  const set = (what: string, stage: number, m: number, v: number): void => {
    values.set(`${what}${stage},${m}`, v);
  };
  const loss = Array.from({ length: s.microbatches }, () => 0);
  const gradient = Array.from({ length: chain }, () => 0);
  const inputGradient = (stage: number, m: number): void => {
    const [x, w] = [get("x", stage, m), weight(stage % chain)];
    const d = stage % chain === chain - 1 ? get("y", stage, m) : get("d", stage, m);
    const slope = 1 - Math.tanh(w * x) ** 2;
    const out = d * (1 + slope * w);
    set("w", stage, m, d * slope * x);
    if (stage % chain > 0) {
      if (s.stageRank[stage - 1] === s.stageRank[stage]) set("d", stage - 1, m, out);
      else set("g", stage, m, out);
    }
  };
  const weightGradient = (stage: number, m: number): void => {
    gradient[stage % chain]! += get("w", stage, m);
  };
  for (let left = s.kind.length, progress = true; left > 0;) {
    if (!progress) throw new Error("no rank can go on");
    progress = false;
    for (let r = 0; r < s.ranks; r++) {
      for (;;) {
        const a = rows[r]![0];
        if (a === undefined) break;
        const { stage, microbatch: m } = a;
        if (a.kind === "RECV_F" || a.kind === "RECV_B") {
          const from = s.stageRank[stage + (a.kind === "RECV_F" ? -1 : 1)]!;
          const v = channel(from, r).shift();
          if (v === undefined) break;
          set(a.kind === "RECV_F" ? "x" : "d", stage, m, v);
        } else if (a.kind === "F") {
          const x = stage % chain === 0 ? input(m) : get("x", stage, m);
          const y = Math.tanh(weight(stage % chain) * x) + x;
          set("x", stage, m, x);
          set("y", stage, m, y);
          if (stage % chain === chain - 1) loss[m] = y ** 2 / 2;
          else if (s.stageRank[stage + 1] === r) set("x", stage + 1, m, y);
        } else if (a.kind === "SEND_F") {
          channel(r, s.stageRank[stage + 1]!).push(get("y", stage, m));
        } else if (a.kind === "SEND_B") {
          channel(r, s.stageRank[stage - 1]!).push(get("g", stage, m));
        } else {
          if (a.kind !== "W") inputGradient(stage, m);
          if (a.kind !== "I") weightGradient(stage, m);
        }
        rows[r]!.shift();
        left--;
        progress = true;
      }
    }
  }
  return { loss, gradient };
}

function expectSame(s: Schedule): void {
  const expected = reference(s.stages / s.directions, s.microbatches, !s.forwardOnly);
  const ours = run(s);
  // A microbatch's loss is computed by the same operations, so it is the same bit for bit.
  expect(ours.loss).toEqual(expected.loss);
  for (const [stage, g] of expected.gradient.entries()) {
    // Sums over microbatches in another order: a few units in the last place of 14 terms.
    expect(ours.gradient[stage]! - g).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(g)));
    expect(g - ours.gradient[stage]!).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(g)));
  }
}

test("every schedule computes the loss and gradients of one rank over channels without tags", () => {
  fc.assert(
    fc.property(anySchedule, fc.constantFrom("late" as const, "early" as const), (s, receives) => {
      expectSame(lower(s, { receives }));
    }),
    { numRuns: 150 },
  );
});

test("its forward-only form computes the same loss", () => {
  fc.assert(
    fc.property(anySchedule, (s) => {
      expectSame(lower(forwardOnly(s)));
    }),
  );
});
