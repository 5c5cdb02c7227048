import { expect, test } from "vitest";
import type { Benchmark } from "../src/benchmark.ts";
import { runBenchmark } from "../src/run-benchmark.ts";
import { printTable } from "../src/table.ts";

let now = 0;
const around = {
  clocks: { wall: () => now, cpu: () => now },
  date: "2026-01-01T00:00:00Z",
  cpu: "1 x test",
};
const benchmark: Benchmark = {
  id: "core/heap",
  what: "pushes",
  unit: "s",
  better: "lower",
  target: 4,
  measure: () => 6,
};

test("a figure carries the peer's value and the ratio of the two", async () => {
  const outcome = await runBenchmark(
    { ...benchmark, peer: { name: "other 1.0", measure: () => 3 } },
    around,
  );
  expect(outcome).toMatchObject({
    kind: "figure",
    figure: {
      id: "core/heap",
      package: "core",
      value: 6,
      target: 4,
      peer: "other 1.0",
      peerValue: 3,
      ratio: 2,
    },
  });
  const published = { name: "other 1.0", value: 12, source: "its paper, table 2" };
  expect(await runBenchmark({ ...benchmark, peer: published }, around)).toMatchObject({
    figure: { peerValue: 12, ratio: 0.5 },
    note: "other 1.0, published: its paper, table 2",
  });
});

test("a peer that is not installed leaves its columns null and is named", async () => {
  // A variable, so that the compiler does not look for what is not there.
  const specifier: string = "@trireme/no-such-package";
  const missing = { name: "other 1.0", time: () => import(specifier) };
  const outcome = await runBenchmark({ ...benchmark, peer: missing }, around);
  expect(outcome).toMatchObject({
    figure: { peer: null, peerValue: null, ratio: null },
    note: "other 1.0: not installed",
  });
});

test("what throws is a failure with its reason, after clearing away", async () => {
  let cleared = 0;
  const failing = {
    ...benchmark,
    measure: () => {
      throw new Error("no luck");
    },
    after: () => cleared++,
  };
  expect(await runBenchmark(failing, around)).toEqual({
    kind: "failed",
    id: "core/heap",
    note: "no luck",
  });
  expect(cleared).toBe(1);
});

test("the table puts the value beside the target and the peer", async () => {
  const outcomes = [
    await runBenchmark({ ...benchmark, peer: { name: "other 1.0", measure: () => 3 } }, around),
    await runBenchmark(
      {
        ...benchmark,
        id: "core/rate",
        unit: "items/s",
        better: "higher",
        measure: () => 1_234_567,
      },
      around,
    ),
    await runBenchmark({ ...benchmark, id: "core/none", measure: () => undefined }, around),
  ];
  expect(printTable(outcomes)).toBe(
    [
      "figure     value              target       peer  ratio",
      "core/heap  6 s                ≤ 4 MISSED   3     2      other 1.0",
      "core/rate  1,235,000 items/s  ≥ 4 reached",
      "core/none  skipped                                      cannot be had on this machine",
    ].join("\n"),
  );
});
