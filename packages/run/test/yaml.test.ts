import { RunError, checkRun, formatProblem } from "@trireme/run";
import { parseRunYaml } from "@trireme/run/yaml";
import { describe, expect, it } from "vitest";
import { smallRun, smallYaml } from "./small-run.ts";

function lines(text: string): string[] {
  const file = parseRunYaml(text, { file: "run.yaml" });
  const check = checkRun(file.description);
  return check.ok ? [] : check.problems.map((problem) => formatProblem(file.locate(problem)));
}

describe("a run file", () => {
  it("is the data it says", () => {
    expect(parseRunYaml(smallYaml, { file: "run.yaml" }).description).toEqual(smallRun);
    expect(lines(smallYaml)).toEqual([]);
  });

  it("prints problems with file, line and column, from the top", () => {
    const text = smallYaml
      .replace("pp: 2", "pp: two")
      .replace("tokenizer: byte", "tokeniser: byte")
      .replace("steps: 10", "steps: -1");
    expect(lines(text)).toEqual([
      'run.yaml:8:7: plan.pp = "two": must be a number',
      "run.yaml:14:3: data.tokeniser: unknown key; did you mean tokenizer?",
      "run.yaml:18:8: steps = -1: must be at least 1; nearest: 1",
    ]);
  });

  it("points at the group that lacks a key", () => {
    expect(lines(smallYaml.replace("  globalBatch: 8\n", ""))[0]).toMatch(
      /^run\.yaml:7:1: plan\.globalBatch: required/,
    );
  });

  it("points into lists", () => {
    const text = smallYaml.replace("pp: 2", "pp: 2\n  stageLayers: [2, 1.5]");
    expect(lines(text)[0]).toMatch(/^run\.yaml:9:20: plan\.stageLayers\[1\] = 1\.5/);
  });

  it.each([
    ["a: [1, 2", /^run\.yaml:1:\d+: /],
    ["a: 1\na: 2", /^run\.yaml:2:1: Map keys must be unique/],
    ["a:\n\t- 1", /^run\.yaml:2:1: /],
    ["a: *missing", /^run\.yaml:\d+:\d+: /],
  ])("%j is refused with the place of the error", (text, line) => {
    expect(() => parseRunYaml(text, { file: "run.yaml" })).toThrow(RunError);
    expect(() => parseRunYaml(text, { file: "run.yaml" })).toThrow(line);
  });

  it("refuses aliases that unfold without end", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"];
    for (const [name, last] of ["ba", "cb", "dc", "ed"].map((s) => [s[0], s[1]])) {
      bomb.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${last}`).join(", ")}]`);
    }
    expect(() => parseRunYaml(bomb.join("\n"), { file: "run.yaml" })).toThrow(RunError);
  });

  it("of nothing is a run without its sections", () => {
    for (const text of ["", "# nothing yet\n", "null"]) {
      expect(() => lines(text)).toThrow("run.yaml:1:1: the file is empty; a run needs model");
    }
    expect(() => lines(`${smallYaml}\n---\nname: other\n`)).toThrow(
      /^run\.yaml:\d+:1: a run file is one document; remove what follows$/,
    );
  });
});
