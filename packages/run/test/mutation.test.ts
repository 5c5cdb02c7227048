import { RunError, checkRun, formatProblem } from "@trireme/run";
import { parseRunYaml } from "@trireme/run/yaml";
import fc from "fast-check";
import { expect, it } from "vitest";
import { smallRun, smallYaml } from "./small-run.ts";

const scalar = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.string(),
  fc.boolean(),
  fc.constantFrom(
    null,
    undefined,
    0,
    -1,
    2 ** 53,
    2 ** 31,
    Number.NaN,
    "",
    "auto",
    "local",
    "8 GB",
    [],
    {},
  ),
);

/** Every place of the small run, as paths. */
function places(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, child]) => places(child, [...path, key]))];
}

function replace(value: unknown, path: readonly string[], by: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return by;
  if (Array.isArray(value)) {
    return value.map((one: unknown, i) => (`${i}` === key ? replace(one, rest, by) : one));
  }
  const entries: [string, unknown][] = Object.entries(Object(value));
  const group = new Map(entries);
  group.set(key, replace(group.get(key), rest, by));
  return Object.fromEntries(group);
}

/** Experts, an adapter, an encoder; pipelines that differ. */
const bases: readonly object[] = [
  smallRun,
  {
    ...smallRun,
    model: {
      ...smallRun.model,
      activation: "swiglu",
      experts: { count: 4, active: 2, ffn: 64 },
      window: { size: 8, every: 2 },
      adapter: { rank: 2, targets: ["query"] },
      encoders: [{ layers: 1, hidden: 16, heads: 2, patch: 4, tokens: 8 }],
    },
    plan: { ep: 2, dp: 2, globalBatch: 8, order: ["tp", "cp", "dp", "pp"] },
  },
  {
    ...smallRun,
    plan: {
      pipelines: [
        [
          { tp: 2, layers: 3 },
          { tp: 1, layers: 1 },
        ],
        [{ tp: 1, layers: 4 }],
      ],
      pipelineBatches: [5, 3],
      globalBatch: 8,
    },
  },
];

const mutations = fc.constantFrom(...bases).chain((base) =>
  fc.tuple(
    fc.constant(base),
    fc.array(fc.tuple(fc.constantFrom(...places(base)), fc.option(fc.string()), scalar), {
      minLength: 1,
      maxLength: 4,
    }),
  ),
);

it("what is mutated resolves before it is", () => {
  for (const base of bases) expect(checkRun(base)).toMatchObject({ ok: true });
});

/** The lines a file's problems are printed as; none when it resolves. */
function linesOf(text: string): string[] {
  try {
    const file = parseRunYaml(text, { file: "run.yaml" });
    const check = checkRun(file.description);
    return check.ok ? [] : check.problems.map((problem) => formatProblem(file.locate(problem)));
  } catch (error) {
    if (error instanceof RunError) return error.problems.map(formatProblem);
    throw error;
  }
}

it("a thousand mutated descriptions each resolve or yield precise lines", () => {
  fc.assert(
    fc.property(mutations, ([base, changes]) => {
      let description: unknown = base;
      for (const [path, extra, value] of changes) {
        const place = extra === null ? path : [...path.slice(0, 1), extra];
        description = replace(description, place, value);
      }
      const check = checkRun(description);
      const rules = check.ok ? ["resolved"] : check.problems.map((problem) => problem.rule);
      expect(rules.length).toBeGreaterThan(0);
      expect(rules).not.toContain("");
    }),
    { numRuns: 1000 },
  );
});

it("a thousand mangled files each parse and locate their problems, or say where they stop being YAML", () => {
  const put = [
    "",
    ":",
    "\n",
    "  ",
    "- ",
    "[",
    "}",
    '"',
    "&a ",
    "*a",
    "0",
    "x",
    "\t",
    "#",
    "!!int ",
  ];
  const edit = fc.tuple(fc.nat(smallYaml.length), fc.nat(8), fc.constantFrom(...put));
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      let text = smallYaml;
      for (const [at, cut, by] of edits) text = text.slice(0, at) + by + text.slice(at + cut);
      for (const line of linesOf(text)) {
        expect(line).toMatch(/^run\.yaml:\d+:\d+: \S.{8,}$/);
        expect(line).not.toMatch(/undefined|\[object|at .*\.ts/);
      }
    }),
    { numRuns: 1000 },
  );
});
