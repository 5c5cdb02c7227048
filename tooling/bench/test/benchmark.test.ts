import { expect, test } from "vitest";
import { benchmarksOf } from "../src/benchmark.ts";

const good = {
  id: "core/heap",
  what: "pushes",
  unit: "s",
  better: "lower",
  target: null,
  time: () => undefined,
};
const read = (...benchmarks: unknown[]) => benchmarksOf({ benchmarks }, "heap.bench.ts");

test("a file in the form is read as it is", () => {
  const full = {
    ...good,
    amount: 2,
    clock: "wall",
    repeats: 3,
    statistic: "median",
    before: () => 0,
    after: () => 0,
  };
  const peer = { name: "other 1.0", value: 3, source: "its README" };
  expect(read(full, { ...good, id: "core/queue", peer })).toEqual([
    full,
    { ...good, id: "core/queue", peer },
  ]);
});

test("what is not in the form is refused with the file, the id and the field", () => {
  const cases: [unknown, string][] = [
    [{ ...good, id: "heap" }, 'heap.bench.ts: heap: id is "heap"'],
    [{ ...good, target: undefined }, "heap.bench.ts: core/heap: target is undefined"],
    [{ ...good, better: "less" }, 'better is "less"'],
    [{ ...good, target: Number.NaN }, "target is null"],
    [{ ...good, time: undefined }, "give one of time and measure"],
    [{ ...good, measure: () => 1 }, "give one of time and measure"],
    [{ ...good, amount: 0 }, "amount is 0"],
    [{ ...good, time: undefined, measure: () => 1, amount: 1 }, "amount goes with time only"],
    [{ ...good, repeat: 3 }, "repeat is no field of the form"],
    [{ ...good, repeats: 1.5 }, "repeats is 1.5"],
    [{ ...good, peer: { name: "x" } }, "peer: give one of time, measure and value"],
    [{ ...good, peer: { name: "x", value: 1 } }, "peer: a published value needs its source"],
    [{ ...good, peer: { value: 1, source: "y" } }, "peer: name is undefined"],
    [7, "benchmarks[0]: is no object"],
  ];
  for (const [entry, reason] of cases) expect(() => read(entry)).toThrow(reason);
  expect(() => read(good, good)).toThrow("the id comes twice");
  expect(() => benchmarksOf({ default: [good] }, "f")).toThrow(
    "f: exports no array named benchmarks",
  );
});
