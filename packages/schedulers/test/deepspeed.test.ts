import { expect, test } from "vitest";
import {
  actionsOf,
  deepSpeedBuffers,
  deepSpeedInference,
  deepSpeedTrain,
  lower,
  printSchedule,
  slotCount,
  validate,
} from "@trireme/schedulers";

test("the training grid of 3 stages and 4 microbatches is DeepSpeed's", () => {
  const s = deepSpeedTrain({ ranks: 3, microbatches: 4 });
  const rows = printSchedule(s)
    .trimEnd()
    .split("\n")
    .map((line) =>
      line
        .split(",")
        .map((cell) => cell.slice(1) || "_")
        .join(" "),
    );
  expect(rows[0]).toBe("F0 _ F1 _ F2 B0 F3 B1 _ B2 _ B3");
  expect(rows[2]).toBe("_ _ F0 B0 F1 B1 F2 B2 F3 B3");
  expect(slotCount(s)).toBe(2 * (4 + 3 - 1));
  expect(validate(s)).toEqual({ ok: true });
});

test("the inference grid has M + P − 1 slots", () => {
  const s = deepSpeedInference({ ranks: 4, microbatches: 6 });
  expect(slotCount(s)).toBe(9);
  expect(validate(s)).toEqual({ ok: true });
  expect(deepSpeedBuffers(s, 0)).toBe(2);
});

test("the first stage receives no activation and sends no gradient, the last the reverse", () => {
  const l = lower(deepSpeedTrain({ ranks: 3, microbatches: 5 }));
  const kinds = [0, 1, 2].map((r) => new Set(actionsOf(l, r).map((a) => a.kind)));
  expect(kinds[0]).toEqual(new Set(["F", "B", "SEND_F", "RECV_B"]));
  expect(kinds[1]).toEqual(new Set(["F", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"]));
  expect(kinds[2]).toEqual(new Set(["F", "B", "RECV_F", "SEND_B"]));
});

test("no buffer is taken by two microbatches at once", () => {
  for (const [ranks, microbatches] of [
    [1, 1],
    [3, 4],
    [4, 2],
    [5, 11],
  ] as const) {
    const s = deepSpeedTrain({ ranks, microbatches });
    for (let r = 0; r < ranks; r++) {
      const buffers = deepSpeedBuffers(s, r);
      expect(buffers).toBe(Math.max(2, Math.min(ranks - r, microbatches)));
      const holder = new Map<number, number>();
      for (const a of actionsOf(s, r)) {
        const buffer = a.microbatch % buffers;
        if (a.kind === "F") {
          expect(holder.has(buffer)).toBe(false);
          holder.set(buffer, a.microbatch);
        } else {
          expect(holder.get(buffer)).toBe(a.microbatch);
          holder.delete(buffer);
        }
      }
    }
  }
});
