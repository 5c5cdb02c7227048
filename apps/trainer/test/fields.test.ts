import { createRng } from "@trireme/core";
import { expect, it } from "vitest";
import { fields, wrap } from "../src/report/fields.ts";
import { Capture, widest } from "./capture.ts";

it("wraps at spaces and loses no word", () => {
  const rng = createRng(1);
  for (let round = 0; round < 200; round++) {
    const words = Array.from({ length: 1 + rng.integer(30) }, () =>
      "w".repeat(1 + rng.integer(12)),
    );
    const width = 12 + rng.integer(50);
    const lines = wrap(words.join(" "), width);
    expect(lines.join(" ")).toBe(words.join(" "));
    expect(widest(lines.join("\n"))).toBeLessThanOrEqual(width);
  }
});

it("aligns values and notes, and hangs what is too long below", () => {
  const text = fields(new Capture({ columns: 40 }), [
    { label: "one", value: "12 ms", note: "a note that does not fit in the line" },
    { label: "two", value: "3 s" },
  ]);
  expect(text).toBe(
    [
      "one            12 ms  a note that does",
      "                      not fit in the",
      "                      line",
      "two            3 s",
      "",
    ].join("\n"),
  );
});

it("puts notes below their values where a column of them would be a word wide", () => {
  const text = fields(new Capture({ columns: 36 }), [
    { label: "one", value: "12.34 ms", note: "a note that goes below" },
  ]);
  expect(text).toBe(
    ["one            12.34 ms", "               a note that goes", "               below", ""].join(
      "\n",
    ),
  );
});
