/** What a directory gives back of a trace that was recorded there, and what it refuses. */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readTrace } from "@trireme/engine";
import { Emulation } from "../src/emulation/emulation.ts";
import type { TraceEvent } from "../src/emulation/trace.ts";
import { beginTrace } from "../src/emulation/trace-directory.ts";
import { FileSink } from "../src/emulation/trace-sink.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "trireme-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

/** Records one rank that replies this to one turn after another. */
function record(...lossSums: readonly number[]): readonly TraceEvent[] {
  beginTrace(directory, 1, 7);
  const sink = new FileSink(directory, 0);
  for (const lossSum of lossSums) {
    sink.event({ kind: "turn", request: "train" });
    sink.event({ kind: "reply", lossSum });
  }
  return sink.shard().events;
}

function emulation(): Emulation {
  return new Emulation(
    { live: [], trace: readTrace(directory), carries: true, board: undefined },
    undefined,
  );
}

test("losses that are no finite numbers come back as they were", () => {
  const lossSums = [Number.NaN, Infinity, -Infinity, 0.1 + 0.2];
  const events = record(...lossSums);
  expect(readTrace(directory).shards[0]!.events).toEqual(events);
  const replayed = emulation();
  for (const lossSum of lossSums) {
    replayed.endTurn();
    expect(replayed.lossSums(new Map())).toEqual([lossSum]);
  }
});

test("a turn that the trace does not end has no loss", () => {
  record(1);
  appendFileSync(join(directory, "rank-0.jsonl"), '{"kind":"turn","request":"train"}\n');
  const replayed = emulation();
  replayed.endTurn();
  expect(replayed.lossSums(new Map())).toEqual([1]);
  for (let turn = 1; turn <= 2; turn++) {
    replayed.endTurn();
    expect(() => replayed.lossSums(new Map())).toThrow(
      `the trace ends before rank 0 had replied to turn ${turn}; record more of the run`,
    );
  }
});

test.each(['{"kind":"reply","los', "null", '{"kind":"step"}'])(
  "a line that is no event is refused by file and number: %s",
  (line) => {
    record(1);
    appendFileSync(join(directory, "rank-0.jsonl"), `\n${line}`);
    const refused = expect.objectContaining({
      code: "TRACE",
      message: expect.stringMatching(/^line 4 of \S+rank-0\.jsonl is not an event of a trace/),
    });
    expect(() => readTrace(directory)).toThrow(refused);
  },
);

test.each([{ ranks: -1 }, { ranks: 1.5 }, { ranks: "1" }, { version: 2 }, { seed: null }])(
  "a head that is none is refused: %j",
  (change) => {
    record(1);
    const head = { version: 1, ranks: 1, seed: 7, ...change };
    writeFileSync(join(directory, "trace.json"), JSON.stringify(head));
    expect(() => readTrace(directory)).toThrow("trace.json is not a trace of version 1");
  },
);

test("data that is gone is missed before a rank asks for it", () => {
  record(1);
  rmSync(join(directory, "rank-0.bin"));
  expect(() => readTrace(directory)).toThrow("has no rank-0.bin that can be read");
});
