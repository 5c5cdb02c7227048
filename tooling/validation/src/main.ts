/** `pnpm validate`: scores the cost model against published measurements. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Arguments, parseArguments, usage } from "./arguments.ts";
import { corpusOutcomes } from "./corpus.ts";
import { parseCorpus } from "./corpus-row.ts";
import type { Outcome } from "./outcome.ts";
import { scatter } from "./plot.ts";
import { accuracyJson, report, table } from "./report.ts";
import { score } from "./score.ts";
import { ownTables, tableOutcomes } from "./tables.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs the command and returns its exit code: 0 done, 2 for arguments or files that make no sense. */
async function main(argv: readonly string[]): Promise<number> {
  let options: Arguments;
  try {
    options = parseArguments(argv);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
  if (options.help) {
    console.log(usage);
    return 0;
  }
  const own = options.corpora.length === 0 && options.tables.length === 0;
  const corpora = own ? [join(root, "data", "corpus.jsonl")] : options.corpora;
  const tables = own ? ownTables.map((name) => join(root, "data", name)) : options.tables;
  const outcomes: Outcome[] = [];
  try {
    for (const file of corpora)
      outcomes.push(...corpusOutcomes(parseCorpus(await readFile(file, "utf8"), file)));
    for (const file of tables) outcomes.push(...tableOutcomes(await readFile(file, "utf8"), file));
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
  const scores = score(outcomes);
  const out = options.out ?? (own ? join(root, "..", "..", "docs", "accuracy") : undefined);
  if (out !== undefined) {
    await mkdir(out, { recursive: true });
    await writeFile(join(out, "accuracy.json"), accuracyJson(scores));
    await writeFile(join(out, "README.md"), report(scores, outcomes));
    await writeFile(join(out, "scatter.svg"), scatter(outcomes));
  }
  console.log(options.json ? accuracyJson(scores).trimEnd() : table(scores));
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
