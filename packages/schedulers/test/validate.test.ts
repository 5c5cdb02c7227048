import { describe, expect, test } from "vitest";
import {
  type Schedule,
  type Validation,
  addEarlySendReceive,
  createSchedule,
  dualPipe,
  interleaved,
  lower,
  parseSchedule,
  replay,
  validate,
} from "@trireme/schedulers";

function rulesOf(v: Validation): string[] {
  return v.ok ? [] : v.violations.map((x) => x.rule);
}

function messagesOf(v: Validation): string[] {
  return v.ok ? [] : v.violations.map((x) => x.message);
}

/** A schedule from rows of actions with blanks between them. */
function rows(...lines: string[]): Schedule {
  return parseSchedule(lines.map((line) => line.replaceAll(" ", ",")).join("\n"));
}

test("torch 2.13's 1F1B row of the last rank is rejected with its reason", () => {
  // Schedule1F1B._get_pipeline_order numbers the last rank's microbatches from 1; P 4, M 8.
  const good = createSchedule("1f1b", { ranks: 4, microbatches: 8 });
  const text = [0, 1, 2].map((r) =>
    [...Array(16).keys()]
      .map((k) => {
        const i = good.offsets[r]! + k;
        return `${r}${good.kind[i] === 0 ? "F" : "B"}${good.microbatch[i]}`;
      })
      .join(","),
  );
  text.push("3F1,3B0,3F2,3B1,3F3,3B2,3F4,3B3,3F5,3B4,3F6,3B5,3F7,3B6,3F8,3B7");
  const bad = parseSchedule(text.join("\n"), { microbatches: 8, stageRank: [0, 1, 2, 3] });
  const v = validate(bad);
  expect(messagesOf(v)).toContain("3F8 on rank 3: microbatches of stage 3 are 0..7");
  expect(messagesOf(v)).toContain("3F0 is missing on rank 3");
  expect(messagesOf(v)).toContain("3B0 on rank 3 before 3F0");
});

describe("each rule", () => {
  test("rows: one for each rank", () => {
    const s = createSchedule("1f1b", { ranks: 2, microbatches: 2 });
    const v = validate({ ...s, ranks: 3 });
    expect(messagesOf(v)).toEqual(["2 rows for 3 ranks; one row per rank"]);
  });
  test("placement: a stage stays on its rank", () => {
    const v = validate(rows("0F0 1F0 1B0", "1F1 0B0"));
    expect(messagesOf(v)).toContain("1F1 on rank 1, but stage 1 is on rank 0");
  });
  test("forward-first: no backward before its forward", () => {
    expect(rulesOf(validate(rows("0B0 0F0")))).toContain("forward-first");
    expect(rulesOf(validate(rows("0I0 0F0 0W0")))).toContain("forward-first");
  });
  test("weight-after-input: no W before its I", () => {
    expect(rulesOf(validate(rows("0F0 0W0 0I0")))).toContain("weight-after-input");
  });
  test("count: every microbatch once, B or I and W", () => {
    expect(messagesOf(validate(rows("0F0 0B0 0F1")))).toEqual([
      "0B1, or 0I1 and 0W1, is missing on rank 0",
    ]);
    expect(messagesOf(validate(rows("0F0 0I0")))).toEqual([
      "0W0 is missing on rank 0; every I needs its W",
    ]);
    expect(messagesOf(validate(rows("0F0 0B0 0B0")))).toEqual(["0B0 on rank 0 runs twice"]);
    expect(messagesOf(validate(rows("0F0 0I0 0W0 0B0")))[0]).toContain(
      "a backward is B, or I and W",
    );
    expect(messagesOf(validate(rows("0F1 0B1")))).toContain("0F0 is missing on rank 0");
  });
  test("sequence: forwards of a stage in order", () => {
    expect(messagesOf(validate(rows("0F1 0F0 0B0 0B1")))).toEqual([
      "0F0 on rank 0 after 0F1; forwards of a stage go in order",
    ]);
  });
  test("sequence: a grid on which a stage comes no later than its input", () => {
    const v = validate(parseSchedule("0F0,,,0B0\n1F0,,1B0,"));
    expect(messagesOf(v)).toEqual(["1F0 on rank 1 in slot 0, but 0F0 is in slot 0"]);
  });
  test("sequence: receives before use, messages matched and in order", () => {
    expect(
      messagesOf(validate(rows("0F0 0SEND_F0 0RECV_B0 0B0", "1F0 1RECV_F0 1B0 1SEND_B0"))),
    ).toEqual(["1F0 on rank 1 before 1RECV_F0"]);
    expect(
      messagesOf(validate(rows("0SEND_F0 0F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"))),
    ).toEqual(["0SEND_F0 on rank 0 before its data exists"]);
    expect(messagesOf(validate(rows("0F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0")))).toEqual([
      "1RECV_F0 on rank 1 has no send on the other side",
    ]);
    const swapped = rows(
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
      "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1",
    );
    expect(messagesOf(validate(swapped))).toEqual([
      "1RECV_F0 on rank 1 is received after a message that rank 0 sends later",
    ]);
  });
  test("sequence: weights are gathered before use", () => {
    expect(messagesOf(validate(rows("0UNSHARD 0F0 0RESHARD 0B0")))).toEqual([
      "0B0 on rank 0 while the weights of stage 0 are sharded",
    ]);
  });
  test("deadlock: the cycle is named", () => {
    const v = validate(rows("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"));
    expect(v).toEqual({
      ok: false,
      violations: [
        {
          rule: "deadlock",
          rank: 0,
          message:
            "deadlock: 0B0 on rank 0 waits for 1B0 behind 1F1 on rank 1; 1F1 on rank 1 waits for 0F1 behind 0B0 on rank 0",
        },
      ],
    });
    expect(() =>
      replay(rows("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"), { forward: 1, backward: 2 }),
    ).toThrow("waits for 1B0 behind 1F1");
  });
});

test("an action that no rank runs is named when the replay stops there", () => {
  expect(() => replay(rows("0F0 0B0", "1F0"), { forward: 1, backward: 1 })).toThrow(
    "0B0 on rank 0 waits for 1B0 or 1I0, which no rank runs",
  );
});

test("two ranks that send to each other at once stop without buffers, and not in torch's order", () => {
  const s = interleaved({ ranks: 2, chunks: 2, microbatches: 4 });
  const late = validate(lower(s), { sends: "rendezvous" });
  expect(rulesOf(late)).toEqual(["deadlock"]);
  expect(validate(addEarlySendReceive(s), { sends: "rendezvous" })).toEqual({ ok: true });
});

test("half of an overlapped pair without the other is refused", () => {
  const s = dualPipe({ ranks: 2, microbatches: 4 });
  const overlap = s.overlap.slice();
  overlap[overlap.indexOf(2)] = 0;
  expect(rulesOf(validate({ ...s, overlap }))).toContain("sequence");
});

test("a schedule with thousands of faults lists a hundred", () => {
  const s = createSchedule("gpipe", { ranks: 4, microbatches: 200 });
  const v = validate({ ...s, microbatch: s.microbatch.map(() => 0) });
  expect(messagesOf(v).length).toBe(100);
});

describe("columns that no generator writes", () => {
  const good = rows("0F0 0B0", "1F0 1B0");
  test("half a pair by itself is no pair: its time would not count as busy", () => {
    const v = validate({ ...good, overlap: Uint8Array.of(0, 2, 0, 0) });
    expect(messagesOf(v)).toEqual([
      "0B0 on rank 0 is marked as the second half of a pair, but no F before it is the first",
    ]);
  });
  test("a pair does not reach into the next rank's row", () => {
    const s = rows("0F0 1F0", "2F0 2B0 1B0 0B0");
    const v = validate({
      ...s,
      kind: Uint8Array.of(0, 0, 3, 0, 3, 3),
      overlap: Uint8Array.of(0, 1, 2, 0, 0, 0),
    });
    expect(messagesOf(v)).toContain("1F0 on rank 0 is marked as overlapped, but no B follows it");
  });
  test("computation needs a microbatch", () => {
    const v = validate({ ...good, microbatch: Int32Array.of(0, 0, -1, 0) });
    expect(messagesOf(v)).toContain("1F on rank 1 has no microbatch");
  });
  test("gradients are reduced once, after the last backward", () => {
    expect(validate(rows("0F0 0B0 0REDUCE_GRAD")).ok).toBe(true);
    expect(messagesOf(validate(rows("0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD")))).toEqual([
      "0REDUCE_GRAD on rank 0 runs twice",
    ]);
    expect(messagesOf(validate(rows("0F0 0REDUCE_GRAD 0B0")))).toEqual([
      "0B0 on rank 0 after 0REDUCE_GRAD, which would miss its gradient",
    ]);
  });
});
