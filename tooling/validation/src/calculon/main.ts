/**
 * `tsx --conditions=@trireme/source tooling/validation/src/calculon/main.ts PATH [PYTHON]`: Calculon (an open model in
 * Python) and ours side by side, on the measured steps that Calculon can describe. PATH is a checkout of
 * github.com/calculon-ai/calculon, PYTHON an interpreter that can import it ("python3" when left out).
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { formatPercent } from "@trireme/core";
import { estimate } from "@trireme/cost-model";
import { corpusOutcomes } from "../corpus.ts";
import { parseCorpus } from "../corpus-row.ts";
import { type Compared, type Step, isCompared } from "../outcome.ts";
import { ownTables, tableOutcomes } from "../tables.ts";
import { type CalculonResult, type Comparison, type Pair, compareByGroup } from "./compare.ts";
import { type CalculonStep, describeForCalculon } from "./describe.ts";

interface Answer {
  readonly missing?: string;
  readonly results: readonly CalculonResult[];
  readonly cpuSeconds: number;
}

/** Exit code 0, also where Calculon is absent (which is said); 1 when it fails. */
function main([path, python = "python3"]: readonly string[]): number {
  if (path === undefined || !existsSync(join(path, "calculon", "llm", "llm.py"))) {
    console.log(
      `skipped: no Calculon at ${path ?? "(no path given)"}; clone github.com/calculon-ai/calculon and give its path`,
    );
    return 0;
  }
  const steps: { row: Compared; step: Step; described: CalculonStep }[] = [];
  const reasons = new Map<string, number>();
  const count = (reason: string): void => {
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  };
  for (const row of measuredSteps()) {
    const described = describeForCalculon(row.step!);
    if (typeof described === "string") count(`cannot describe ${described}`);
    else steps.push({ row, step: row.step!, described });
  }
  const script = fileURLToPath(new URL("run.py", import.meta.url));
  const ran = spawnSync(python, [script, path], {
    input: JSON.stringify(steps.map((s) => s.described)),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  if (ran.status !== 0) {
    console.error(ran.error?.message ?? ran.stderr);
    return 1;
  }
  const answer: Answer = JSON.parse(ran.stdout);
  if (answer.missing !== undefined) {
    console.log(`skipped: ${python} cannot import Calculon (${answer.missing})`);
    return 0;
  }
  const both: (Pair & { step: Step })[] = [];
  for (const [i, { row, step }] of steps.entries()) {
    const { seconds, refused } = answer.results[i]!;
    if (seconds === undefined) count(`refused: ${refused}`);
    else both.push({ row, step, calculon: seconds });
  }
  for (const line of compareByGroup(both)) console.log(text(line));
  for (const [reason, n] of [...reasons].sort((a, b) => b[1] - a[1]))
    console.log(`${n} x ${reason}`);
  const theirs = both.length / answer.cpuSeconds;
  const ours = both.length / oursSeconds(both.map((b) => b.step));
  console.log(
    `evaluations per core-second on these rows, nothing kept between them: Calculon ${theirs.toFixed(0)}, ours ${ours.toFixed(0)} (${(ours / theirs).toFixed(0)} x); searching, see pnpm bench cost-model/`,
  );
  return 0;
}

function measuredSteps(): Compared[] {
  const root = fileURLToPath(new URL("../../data", import.meta.url));
  const read = (name: string): string => readFileSync(join(root, name), "utf8");
  return [
    ...ownTables.flatMap((name) => tableOutcomes(read(name), name)),
    ...corpusOutcomes(parseCorpus(read("corpus.jsonl"), "corpus.jsonl")),
  ]
    .filter(isCompared)
    .filter((o) => o.step !== undefined && !o.group.id.endsWith("-unsure"));
}

function text({ id, n, calculon, ours }: Comparison): string {
  const part = (e: Comparison["ours"]): string =>
    `median ${formatPercent(e.median)}, mean ${formatPercent(e.mean)}, p90 ${formatPercent(e.p90)}`;
  return `${id} (${n} rows): Calculon ${part(calculon)}; ours ${part(ours)}`;
}

/** CPU seconds of one estimate of each, the second time round: both languages have their code loaded. */
function oursSeconds(steps: readonly Step[]): number {
  const all = (): number => {
    const before = process.cpuUsage();
    for (const step of steps) estimate({ ...step, checkMemory: false });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
  all();
  return all();
}

process.exitCode = main(process.argv.slice(2));
