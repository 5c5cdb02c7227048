/** Iteration times of a corpus. */
import { defineModel } from "@trireme/workload";
import { acceleratorOf, clusterOf, familyOf } from "./corpus-hardware.ts";
import { describe } from "./corpus-plan.ts";
import { type CorpusRow, number, object, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";
import { predictStep } from "./predict-step.ts";

const kind = "iteration time";
const source = "corpus";

/** Gates over high-confidence complete rows. */
const gates = {
  h100: {
    id: "dense-h100",
    source,
    kind,
    target: { medianError: 0.04, p90Error: 0.14, spearman: 0.9 },
  },
  a100: {
    id: "dense-a100",
    source,
    kind,
    target: { medianError: 0.07, p90Error: 0.18, spearman: 0.9 },
  },
  moe: { id: "moe", source, kind, target: { medianError: 0.12, p90Error: 0.25 } },
  low: { id: "blackwell-low-precision", source, kind, target: { medianError: 0.12 } },
  other: { id: "dense-other", source, kind },
} as const satisfies Record<string, Group>;

/** The outcome of a throughput row; rows of less confidence are scored apart, without a target. */
export function stepOutcomes(row: CorpusRow): Outcome[] {
  const gate = gateOf(row);
  const sure = row.confidence === "high" && row.complete;
  const group: Group = sure ? gate : { id: `${gate.id}-unsure`, source, kind };
  const seconds = measuredSeconds(row);
  if (seconds === undefined) return [{ group, id: row.id, skipped: "missing: iteration time" }];
  const described = describe(row);
  if (typeof described === "string") return [{ group, id: row.id, skipped: described }];
  const cluster = clusterOf(row);
  if (typeof cluster === "string") return [{ group, id: row.id, skipped: cluster }];
  const m = described.model;
  const layout = [
    m.name,
    m.context,
    text(row.hardware, "gpu"),
    cluster.devices,
    described.plan.globalBatch,
    text(row.parallel, "precision"),
    row.dataset,
  ];
  const family = layout.join("/");
  return [
    predictStep(
      group,
      row.id,
      seconds,
      () => defineModel(m),
      described.plan,
      () => cluster,
      family,
    ),
  ];
}

function gateOf(row: CorpusRow): Group {
  if (object(row.model, "moe") !== undefined) return gates.moe;
  const a = acceleratorOf(text(row.hardware, "gpu"));
  if (a === undefined) return gates.other;
  const low = /fp8|float8|fp4|int8/.test(text(row.parallel, "precision"));
  if (low || a.architecture === "blackwell") return gates.low;
  const family = familyOf(a);
  return family === undefined ? gates.other : gates[family];
}

/** Seconds of an iteration, as printed or from tokens or samples per second. */
function measuredSeconds(row: CorpusRow): number | undefined {
  const printed = number(row.measured, "iter_s") ?? number(row.derived, "iter_s");
  if (printed !== undefined) return printed;
  const samples = number(row.parallel, "gbs");
  const sequence = number(row.model, "seq");
  if (samples === undefined || sequence === undefined) return undefined;
  const perDevice = number(row.measured, "tokens_per_s_per_gpu");
  const devices = number(row.hardware, "num_gpus");
  const rate =
    perDevice !== undefined && devices !== undefined
      ? perDevice * devices
      : (number(row.measured, "tokens_per_s") ?? number(row.measured, "tokens_per_s_total"));
  return rate === undefined ? undefined : (samples * sequence) / rate;
}
