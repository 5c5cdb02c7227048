import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Schedule,
  dualPipeV,
  lower,
  parseSchedule,
  printSchedule,
  withSlots,
} from "@trireme/schedulers";
import { anySchedule } from "./random-schedule.ts";

function columns(s: Schedule): unknown {
  const { offsets, kind, stage, microbatch, overlap, slot } = s;
  return { offsets, kind, stage, microbatch, overlap, slot };
}

describe("CSV", () => {
  test("reading what was printed gives the same columns, compute only and with communication", () => {
    fc.assert(
      fc.property(anySchedule, fc.boolean(), (compute, lowered) => {
        const s = lowered ? lower(compute, { maxUnsharded: 2, reduceGrad: true }) : compute;
        const again = parseSchedule(printSchedule(s), { ...s, slots: s.slot !== undefined });
        expect(columns(again)).toEqual(columns(s));
        expect(printSchedule(again)).toBe(printSchedule(s));
      }),
    );
  });
  test("idle slots survive", () => {
    const s = withSlots(dualPipeV({ ranks: 2, microbatches: 4 }));
    expect(columns(parseSchedule(printSchedule(s), s))).toEqual(columns(s));
  });
  test("idle cells are empty and pairs are one cell", () => {
    expect(printSchedule(parseSchedule("0F0,, ,0B0\r\n,1F0,(1F1;1B0)OVERLAP_F_B\r\n"))).toBe(
      "0F0,,,0B0\n,1F0,(1F1;1B0)OVERLAP_F_B\n",
    );
  });
  test("the cell that is no action is named", () => {
    expect(() => parseSchedule("0F0,0B0\n1F0,1Q0")).toThrow(
      'row 2, cell 2: action "1Q0": unknown kind Q',
    );
    expect(() => parseSchedule("")).toThrow("the text holds no action, such as 0F0");
    expect(() => parseSchedule("0F2147483647")).toThrow("are beyond the 2^27 pairs");
    expect(() => parseSchedule("2000000F0")).toThrow("beyond the 2^20 stages");
    expect(() => parseSchedule("0F0,0B0\n\n\n")).toThrow(
      "row 2 holds no action, such as 0F0; every rank has a row with some",
    );
    expect(() => parseSchedule("0F0,0B0", { microbatches: NaN })).toThrow(
      "microbatches = NaN is not an integer of 1 or more",
    );
  });
  test("a byte order mark and the line ends of Windows are passed over", () => {
    const text = "0F0,0B0\n1F0,1B0\n";
    const windows = `\ufeff${text.replaceAll("\n", "\r\n")}`;
    expect(parseSchedule(windows)).toEqual(parseSchedule(text));
  });
});
