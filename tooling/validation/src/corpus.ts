/** Scores the rows of a corpus by kind. */
import type { CorpusRow } from "./corpus-row.ts";
import { expertOutcomes } from "./corpus-experts.ts";
import { kernelOutcome } from "./corpus-kernels.ts";
import { collectiveOutcomes } from "./corpus-collectives.ts";
import { memoryOutcomes } from "./corpus-memory.ts";
import { scheduleOutcomes } from "./corpus-schedules.ts";
import { stepOutcomes } from "./corpus-steps.ts";
import { type Outcome, isCompared } from "./outcome.ts";

/** Outcomes of every row; one that carries both a time and a peak of memory has two. */
export function corpusOutcomes(rows: readonly CorpusRow[]): Outcome[] {
  const collectives = rows.filter((row) => row.kind === "collective");
  const steps = rows.filter((row) => row.kind !== "collective");
  return [
    ...steps.flatMap((row) => outcomesOf(row).map((outcome) => from(row, outcome))),
    ...collectiveOutcomes(collectives).map((outcome, i) => from(collectives[i]!, outcome)),
  ];
}

/** An outcome with the row's source. */
function from(row: CorpusRow, outcome: Outcome): Outcome {
  return isCompared(outcome) ? { ...outcome, source: row.source } : outcome;
}

function outcomesOf(row: CorpusRow): Outcome[] {
  switch (row.kind) {
    case "throughput":
      return [...stepOutcomes(row), ...memoryOutcomes(row)];
    case "memory":
      return memoryOutcomes(row);
    case "gemm":
    case "attention":
      return [kernelOutcome(row)];
    case "schedule":
      return scheduleOutcomes(row);
    case "moe-dispatch":
      return expertOutcomes(row);
    default: {
      const group = { id: row.kind, source: "corpus", kind: row.kind };
      return [{ group, id: row.id, skipped: `kind not covered: ${row.kind}` }];
    }
  }
}
