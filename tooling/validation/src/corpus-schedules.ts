/**
 * Pipeline schedules that were measured with their profile (zero bubble, arXiv 2401.10241, Tables 4 to 6): by our
 * closed forms from the profile alone.
 */
import { type PipelineCosts, closedFormMakespan } from "@trireme/cost-model";
import { ms } from "@trireme/core";
import type { Plan } from "@trireme/workload";
import { type CorpusRow, number, object, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";
import { vocabularyOutcomes } from "./corpus-vocabulary.ts";

const source = "corpus";

/** Published names, and the schedule here that holds as much and waits as little (arXiv 2401.10241 §3: p, and 2p, activations). */
const schedules: Readonly<Record<string, Plan["schedule"]>> = {
  "1f1b": "1f1b",
  "1f1b-i": "interleaved",
  "zb-1p": "zb-h1",
  "zb-2p": "zb-h2",
};

/** The outcomes of a schedule row: of its bubble as the source works it out, and of its step. */
export function scheduleOutcomes(row: CorpusRow): Outcome[] {
  return object(row.measured, "profiled_ms") === undefined
    ? vocabularyOutcomes(row)
    : profiled(row);
}

function profiled(row: CorpusRow): Outcome[] {
  const suffix = row.confidence === "high" ? "" : "-unsure";
  const bubbles: Group = { id: `schedule-bubble${suffix}`, source, kind: "pipeline length" };
  const steps: Group = { id: `schedule-step${suffix}`, source, kind: "step from profile" };
  const profile = object(row.measured, "profiled_ms")!;
  const ranks = number(row.parallel, "pp");
  const microbatches = number(row.parallel, "num_microbatches");
  if (ranks === undefined || microbatches === undefined) {
    return [{ group: bubbles, id: row.id, skipped: "missing: pp, num_microbatches" }];
  }
  const shape = { ranks, microbatches, chunks: number(row.parallel, "vpp") ?? 1 };
  const outcomes: Outcome[] = [];
  const stated = text(row.parallel, "schedule");
  const named = Object.hasOwn(schedules, stated) ? schedules[stated] : undefined;
  for (const [key, schedule] of [
    ["theoretical_bubble_rate", named],
    ["theoretical_bubble_rate_zb_h1", "zb-h1"],
    ["theoretical_bubble_rate_zb_h2", "zb-h2"],
  ] as const) {
    const bubble = number(row.measured, key);
    if (bubble === undefined || schedule === undefined) continue;
    const costs = costsOf(schedule, shape, profile);
    if (typeof costs === "string") return [{ group: bubbles, id: row.id, skipped: costs }];
    const { length, busy } = costs;
    outcomes.push({
      group: bubbles,
      id: key === "theoretical_bubble_rate" ? row.id : `${row.id}#${schedule}`,
      measured: busy / (1 - bubble),
      predicted: length,
      detail: `${schedule}: bubble ${(100 * bubble).toFixed(1)} % theirs, ${(100 * (1 - busy / length)).toFixed(1)} % ours`,
    });
    outcomes.push(...stepOutcome(row, steps, schedule, length));
  }
  return outcomes.length > 0
    ? outcomes
    : [{ group: bubbles, id: row.id, skipped: `not covered: schedule ${stated}` }];
}

function stepOutcome(
  row: CorpusRow,
  group: Group,
  schedule: Plan["schedule"],
  predicted: number,
): Outcome[] {
  const rate = number(row.measured, "samples_per_s_per_gpu");
  const samples = number(row.parallel, "gbs");
  const devices = number(row.hardware, "num_gpus");
  if (rate === undefined || samples === undefined || devices === undefined) return [];
  const measured = samples / (rate * devices);
  return [{ group, id: row.id, measured, predicted, detail: schedule }];
}

/** Length of the pipeline from its profile, and what of it a rank computes. */
function costsOf(
  schedule: Plan["schedule"],
  { ranks, microbatches, chunks }: Pick<PipelineCosts, "ranks" | "microbatches" | "chunks">,
  profile: NonNullable<ReturnType<typeof object>>,
): { readonly length: number; readonly busy: number } | string {
  const [f, b, w, c] = ["TF", "TB", "TW", "Tcomm"].map((key) => number(profile, key));
  if (f === undefined || b === undefined || w === undefined || c === undefined) {
    return "missing: TF, TB, TW, Tcomm";
  }
  const stages = ranks * chunks;
  const each = (milliseconds: number): Float64Array =>
    new Float64Array(stages).fill(ms(milliseconds) / chunks);
  const length = closedFormMakespan({
    schedule,
    ranks,
    chunks,
    microbatches,
    forward: each(f),
    backward: each(b + w),
    weightGradient: each(w),
    onRank: Array.from({ length: ranks }, (_, rank) =>
      Array.from({ length: chunks }, (__, chunk) => chunk * ranks + rank),
    ),
    pointToPoint: ms(c),
    overlapped: true,
  });
  // The source counts each rank's own time: where ranks update one by one, a late start is none of it (§5.2).
  const late = schedule === "zb-h2" ? (ranks - 1) * ms(f + c) : 0;
  const busy = microbatches * ms(f + b + w);
  return { length: Math.max(busy, length - late), busy };
}
