import { expect, test } from "vitest";
import { type Figure, mergeFigures, reaches } from "../src/figure.ts";

const figure = (id: string, value: number, change: Partial<Figure> = {}): Figure => ({
  id,
  package: id.slice(0, id.indexOf("/")),
  what: "what it is",
  value,
  unit: "s",
  better: "lower",
  target: null,
  peer: null,
  peerValue: null,
  ratio: null,
  date: "2026-01-01T00:00:00Z",
  cpu: "1 x test",
  ...change,
});

test("figures measured again replace their lines, all others stay as they were", () => {
  const before = mergeFigures("", [figure("b/x", 1), figure("a/y", 2)]);
  const kept = before.split("\n")[0]!;
  const after = mergeFigures(before, [figure("b/x", 3), figure("a/z", 4)]);
  const lines = after.trimEnd().split("\n");
  expect(lines[0]).toBe(kept);
  expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
    figure("a/y", 2),
    figure("a/z", 4),
    figure("b/x", 3),
  ]);
});

test("a line has the fields of the form, in its order", () => {
  const [line] = mergeFigures("", [figure("a/b", 1)]).split("\n");
  const keys = "id package what value unit better target peer peerValue ratio date cpu";
  const fields: Record<string, unknown> = JSON.parse(line!);
  expect(Object.keys(fields).join(" ")).toBe(keys);
});

test("a record that cannot be read is not overwritten", () => {
  expect(() => mergeFigures('{"id":"a/b"}\nnot json\n', [])).toThrow(
    "line 2 of the recorded figures is no JSON",
  );
  expect(() => mergeFigures('{"value":1}', [])).toThrow("line 1 of the recorded figures has no id");
});

test("a target is reached from the side that is better", () => {
  expect(reaches(figure("a/b", 1, { target: 1 }))).toBe(true);
  expect(reaches(figure("a/b", 1.1, { target: 1 }))).toBe(false);
  expect(reaches(figure("a/b", 1.1, { target: 1, better: "higher" }))).toBe(true);
  expect(reaches(figure("a/b", 0.9, { target: 1, better: "higher" }))).toBe(false);
  expect(reaches(figure("a/b", 1))).toBeUndefined();
});
