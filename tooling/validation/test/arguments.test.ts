import { expect, test } from "vitest";
import { parseArguments } from "../src/arguments.ts";

test("files repeat, and a value may be joined to its flag", () => {
  expect(
    parseArguments(["--csv", "a", "--csv=b", "--corpus", "c", "--out", "d", "--json"]),
  ).toEqual({
    corpora: ["c"],
    tables: ["a", "b"],
    out: "d",
    json: true,
    help: false,
  });
});

test("what makes no sense is refused in one line", () => {
  expect(() => parseArguments(["--corpsu", "a"])).toThrow(
    "unknown argument --corpsu; did you mean --corpus?",
  );
  expect(() => parseArguments(["--csv"])).toThrow("--csv needs a value");
});
