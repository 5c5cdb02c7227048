import { describe, expect, test } from "vitest";
import {
  actionAt,
  actionsOf,
  chimera,
  createSchedule,
  dualPipe,
  dualPipeV,
  replay,
  scheduleNames,
  validate,
} from "@trireme/schedulers";

describe("schedules by name", () => {
  test("names are known in either case and by the names of torch", () => {
    const o = { ranks: 2, microbatches: 4 };
    expect(createSchedule("GPipe", o).name).toBe("gpipe");
    expect(createSchedule("ZBVZeroBubble", o).name).toBe("zb-v");
    expect(createSchedule("Interleaved1F1B", { ...o, chunks: 2 }).name).toBe("interleaved");
  });
  test("an unknown name is answered with the nearest", () => {
    expect(() => createSchedule("1f1", { ranks: 2, microbatches: 4 })).toThrow(
      'unknown schedule "1f1"; did you mean "1f1b"?',
    );
    expect(() => createSchedule("spiral-of-doom", { ranks: 2, microbatches: 4 })).toThrow(
      "known are gpipe, 1f1b",
    );
  });
  test("stages per rank that a schedule cannot have are refused", () => {
    // torchtitan#774: a V placement with another number of stages than two.
    expect(() => createSchedule("zb-v", { ranks: 2, chunks: 3, microbatches: 4 })).toThrow(
      "zb-v has 2 stages per rank, not 3",
    );
    expect(() => createSchedule("1f1b", { ranks: 2, chunks: 2, microbatches: 4 })).toThrow(
      "1f1b has 1 stage per rank, not 2",
    );
  });
  test("pipelines too large for memory are refused at once", () => {
    for (const name of scheduleNames) {
      expect(() => createSchedule(name, { ranks: 2 ** 14, microbatches: 2 ** 15 })).toThrow(
        /more than 2\^27|needs/,
      );
    }
  });
  test("one rank runs every schedule", () => {
    for (const name of scheduleNames) {
      expect(validate(createSchedule(name, { ranks: 1, microbatches: 4 }))).toEqual({ ok: true });
    }
  });
  test("fewer microbatches than ranks run, or are refused with the rule", () => {
    // torchtitan#775: such a pipeline hung.
    for (const name of scheduleNames) {
      try {
        expect(validate(createSchedule(name, { ranks: 4, microbatches: 2 }))).toEqual({ ok: true });
      } catch (error) {
        expect(String(error)).toMatch(/needs (an even|at least)/);
      }
    }
  });
});

test("DualPipe's constraints are named with the nearest legal counts", () => {
  expect(() => dualPipe({ ranks: 3, microbatches: 8 })).toThrow(
    "3 ranks and 8 microbatches are not, 4 and 8 are",
  );
  expect(() => dualPipe({ ranks: 4, microbatches: 7 })).toThrow("4 and 8 are");
  expect(() => dualPipe({ ranks: 4, microbatches: 6 })).toThrow("4 and 8 are");
  expect(() => dualPipeV({ ranks: 4, microbatches: 6 })).toThrow("6 are fewer than 2 x 4, take 8");
  expect(() => chimera({ ranks: 4, microbatches: 5 })).toThrow("5 is odd, 6 is not");
});

test("Chimera of as many microbatches as ranks has half of 1F1B's bubble where F and B take equal time", () => {
  for (const ranks of [2, 4, 6, 8, 16]) {
    const s = chimera({ ranks, microbatches: ranks });
    const { idle } = replay(s, { forward: 1, backward: 1 });
    expect([...idle]).toEqual(Array.from({ length: ranks }, () => ranks - 2));
  }
});

test("actions and ranks outside of the schedule are refused", () => {
  const s = createSchedule("1f1b", { ranks: 2, microbatches: 2 });
  expect(() => actionsOf(s, 2)).toThrow("rank 2 is not in 0..1");
  expect(() => actionsOf(s, 0.5)).toThrow("rank 0.5");
  expect(() => actionAt(s, 8)).toThrow("action 8 is outside of the schedule's 0..7");
});

test.each(scheduleNames)(
  "%s of more actions than columns hold is refused before any is made",
  (name) => {
    expect(() => createSchedule(name, { ranks: 2 ** 26, microbatches: 2 ** 27 })).toThrow(
      /actions are more than 2\^27; use fewer microbatches, chunks or ranks/,
    );
  },
);
