/** Schedules with passes over a split vocabulary: orders, memory and times as the paper gives them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type VocabularySchedule,
  addVocabulary,
  createSchedule,
  dualPipe,
  entryCode,
  forwardOnly,
  lower,
  replay,
  replayVocabulary,
  validateVocabulary,
  vocabularyRow,
} from "@trireme/schedulers";
import { trainingSchedule } from "./random-schedule.ts";

const barriers = [1, 2] as const;
const suitable = trainingSchedule.filter((s) => s.directions === 1 && !s.overlap.includes(1));

/** Activations in flight of each rank under unit costs. */
const peaks = (v: VocabularySchedule): number[] => [
  ...replayVocabulary(v, {
    forward: 1,
    backward: 2,
    inputGradient: 1,
    weightGradient: 1,
    s: 1,
    t: 1,
  }).peak,
];

test("1F1B becomes one forward, one backward, one output (Figure 9)", () => {
  const base = createSchedule("1f1b", { ranks: 3, microbatches: 5 });
  const row = (n: 1 | 2): string =>
    vocabularyRow(addVocabulary(base, { barriers: n }), 2).join(" ");
  expect(row(1)).toBe("2F0 2F1 S0 S1 T0 2B0 2F2 2B1 S2 T1 2F3 2B2 S3 T2 2F4 2B3 S4 T3 T4 2B4");
  expect(row(2)).toBe("2F0 2F1 S0 S1 T0 T1 2F2 2B0 S2 2F3 T2 S3 2B1 T3 2F4 2B2 S4 2B3 T4 2B4");
});

test("a rank holds one microbatch more for each barrier, and two halves in V-Half", () => {
  for (const ranks of [2, 4, 8]) {
    const o = { ranks, microbatches: 3 * ranks };
    for (const n of barriers) {
      const loop = addVocabulary(createSchedule("1f1b", o), { barriers: n });
      // p + 2 and p + 1 on the first rank (§5.2).
      expect(peaks(loop)).toEqual(Array.from({ length: ranks }, (_, r) => ranks - r + n));
      const half = createSchedule("v-half", o);
      const alone = replay(half, { forward: 1, inputGradient: 1, weightGradient: 1 }).peak;
      const more = peaks(addVocabulary(half, { barriers: n }));
      for (const [r, most] of more.entries()) expect(most).toBeLessThanOrEqual(alone[r]! + 2 * n);
    }
  }
});

test("1F1B takes M(f + b + s + t) + (p − 1)(f + b): neither ramp nor exchanges show", () => {
  for (const [ranks, M] of [
    [4, 16],
    [8, 64],
    [16, 128],
  ] as const) {
    const base = createSchedule("1f1b", { ranks, microbatches: M });
    for (const n of barriers) {
      for (const exchange of [0, 0.125, 0.25, 0.5]) {
        for (const s of [0.125, 0.5, 1]) {
          const v = addVocabulary(base, { barriers: n, times: { s, t: s, exchange } });
          const exchanges = { output: exchange, statistics: exchange, gradient: exchange };
          const costs = { forward: 1, backward: 2, s, t: s, exchanges };
          const closed = M * (3 + 2 * s) + (ranks - 1) * 3;
          // Waited for, the exchanges of half a forward would add up to 43 %. With one barrier the last T of
          // some ranks stand beside the last backwards of others.
          const ratio = replayVocabulary(v, costs).makespan / closed;
          expect(ratio).toBeGreaterThan(0.985);
          expect(ratio).toBeLessThan(1.03);
        }
      }
    }
  }
  const base = createSchedule("1f1b", { ranks: 16, microbatches: 128 });
  const v = addVocabulary(base, { barriers: 2 });
  const half = { output: 0.5, statistics: 0.5, gradient: 0.5 };
  const costs = { forward: 1, backward: 2, s: 0.5, t: 0.5, exchanges: half };
  expect(replayVocabulary(v, costs).makespan).toBe(128 * 4 + 15 * 3);
});

test("V-Half repeats as before, the passes added to each round", () => {
  const o = { ranks: 8, microbatches: 64 };
  const half = createSchedule("v-half", o);
  const costs = { forward: 1, inputGradient: 1, weightGradient: 1 };
  const alone = replay(half, costs).makespan;
  for (const n of barriers) {
    const v = addVocabulary(half, { barriers: n });
    const { makespan, busy } = replayVocabulary(v, { ...costs, s: 0.5, t: 0.5 });
    expect(new Set(busy)).toEqual(new Set([64 * 7]));
    // Of two microbatches more between forward and backward some show at the end.
    expect(makespan / (alone + 64)).toBeGreaterThan(0.98);
    expect(makespan / (alone + 64)).toBeLessThan(1.04);
  }
});

test("exchanges longer than the room between forward and backward are the pace", () => {
  const base = createSchedule("1f1b", { ranks: 8, microbatches: 64 });
  const time = (n: 1 | 2, each: number): number =>
    replayVocabulary(addVocabulary(base, { barriers: n, times: { exchange: each } }), {
      forward: 1,
      backward: 2,
      s: 0.5,
      t: 0.5,
      exchanges: { output: each, statistics: each, gradient: each },
    }).makespan;
  // All three come between a forward and its backward, and so many rounds of the rank pass meanwhile.
  for (const n of barriers) expect(time(n, 16)).toBeGreaterThan((64 * 3 * 16) / (n + 1));
  expect(time(2, 2)).toBeLessThan(time(1, 2));
});

test("any schedule of one direction takes the passes, and stays valid", () => {
  fc.assert(
    fc.property(suitable, fc.constantFrom(...barriers), (s, n) => {
      const v = addVocabulary(s, { barriers: n });
      expect(validateVocabulary(v)).toEqual({ ok: true });
      expect(v.kind.length).toBe(s.kind.length + 2 * s.ranks * s.microbatches);
      const r = replayVocabulary(v, {
        forward: 1,
        backward: 2,
        inputGradient: 1,
        weightGradient: 1,
        pointToPoint: 0.25,
        s: 0.5,
        t: 0.25,
      });
      for (const [rank, time] of r.idle.entries()) {
        expect(time).toBeGreaterThanOrEqual(0);
        expect(r.waiting[rank]).toBeLessThanOrEqual(2);
      }
    }),
  );
});

test("a row that lacks, doubles or turns a pass round is told, and so is one that never ends", () => {
  const good = addVocabulary(createSchedule("1f1b", { ranks: 2, microbatches: 4 }), {
    barriers: 2,
  });
  const at = (text: string): number => vocabularyRow(good, 0).indexOf(text);
  const told = (change: (kind: Uint8Array, of: Int32Array) => void): string => {
    const [kind, of] = [good.kind.slice(), good.of.slice()];
    change(kind, of);
    const v = validateVocabulary({ ...good, kind, of });
    return v.ok ? "" : v.violations.map((x) => x.message).join("; ");
  };
  expect(told((_, of) => (of[at("S2")] = 1))).toContain("S1 on rank 0 runs twice");
  expect(told((_, of) => (of[at("S2")] = 1))).toContain("S2 is missing on rank 0");
  expect(told((_, of) => (of[at("T1")] = 9))).toContain("microbatches are 0..3");
  expect(
    told((kind) => {
      kind[at("S1")] = entryCode.T;
      kind[at("T1")] = entryCode.S;
    }),
  ).toContain("T1 on rank 0 before S1");
  expect(
    told((_, of) => {
      const [a, b] = [at("0F0"), at("0F1")];
      [of[a], of[b]] = [of[b]!, of[a]!];
    }),
  ).toContain("is not the schedule's next action");
  // The T that the last stage's first backward waits for, behind it.
  const row = vocabularyRow(good, 1);
  const [t, b] = [row.indexOf("T0"), row.indexOf("1B0")];
  const order = row.map((_, i) => i);
  order.splice(b, 0, ...order.splice(t, 1));
  const from = good.offsets[1]!;
  const moved = <A extends Uint8Array | Int32Array>(column: A): A => {
    const copy = column.slice() as A;
    for (const [i, place] of order.entries()) copy[from + i] = column[from + place]!;
    return copy;
  };
  const stuck = { ...good, kind: moved(good.kind), of: moved(good.of) };
  const verdict = validateVocabulary(stuck);
  expect(verdict.ok ? "" : verdict.violations[0]!.rule).toBe("deadlock");
  expect(() => replayVocabulary(stuck, { forward: 1, backward: 2, s: 1, t: 1 })).toThrow("1B0");
});

test("what has no room for passes is refused in one line", () => {
  const o = { ranks: 4, microbatches: 8 };
  const base = createSchedule("1f1b", o);
  expect(() => addVocabulary(dualPipe(o), { barriers: 1 })).toThrow("two directions");
  expect(() => addVocabulary(lower(base), { barriers: 1 })).toThrow("add the vocabulary first");
  expect(() => addVocabulary(forwardOnly(base), { barriers: 1 })).toThrow("without backward");
  expect(() => addVocabulary(createSchedule("dualpipe-v", o), { barriers: 2 })).toThrow(
    "overlapped",
  );
  expect(() => addVocabulary(base, JSON.parse('{"barriers":3}'))).toThrow(
    "barriers 3 are not 1 or 2",
  );
  expect(() => addVocabulary(base, { barriers: 1, times: { s: NaN } })).toThrow("time s NaN");
  const v = addVocabulary(base, { barriers: 1 });
  expect(() => replayVocabulary(v, { forward: 1, backward: 2, s: -1, t: 0 })).toThrow("s is -1");
  expect(() => vocabularyRow(v, 4)).toThrow("rank 4 is not in 0..3");
});
