import { expect, test } from "vitest";
import { encodeMdsSample, mdsColumns } from "@trireme/dataloader";

/** The bytes that a column of JSON holds: the text as Python writes it. */
const json = (value: Parameters<typeof encodeMdsSample>[1][string]): string =>
  new TextDecoder().decode(encodeMdsSample(mdsColumns({ c: "json" }), { c: value }).subarray(4));

test("floats are written as Python's repr writes them", () => {
  // Printed by Python 3.11.
  const printed: [number, string][] = [
    [0.1, "0.1"],
    [1e-4, "0.0001"],
    [1e-5, "1e-05"],
    [1.5e-7, "1.5e-07"],
    [123_456_789_012_345_680, "1.2345678901234568e+17"],
    [-2.5, "-2.5"],
    [1e22, "1e+22"],
    [5e-324, "5e-324"],
    [0.00012345, "0.00012345"],
    [-0, "-0.0"],
  ];
  for (const [value, text] of printed) expect(json(value)).toBe(text);
});

test("texts are ASCII and objects keep their order", () => {
  expect(json('\u007f\u0080\u2028😀\n"')).toBe('"\\u007f\\u0080\\u2028\\ud83d\\ude00\\n\\""');
  expect(json({ b: [1, true, null], a: { é: 10n ** 20n } })).toBe(
    '{"b": [1, true, null], "a": {"\\u00e9": 100000000000000000000}}',
  );
});
