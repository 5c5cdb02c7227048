/** Collectives measured alone, as bus bandwidth. */
import { type PricedOperation, collectiveTime } from "@trireme/collectives";
import { GBps } from "@trireme/core";
import { interval } from "@trireme/cost-model";
import { hostOf } from "@trireme/topology";
import { clusterOf } from "./corpus-hardware.ts";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";

const operations: Readonly<Record<string, PricedOperation>> = {
  all_reduce: "all-reduce",
  all_gather: "all-gather",
  reduce_scatter: "reduce-scatter",
  all_to_all: "all-to-all",
};

/** The outcome of a collective row. */
export function collectiveOutcome(row: CorpusRow): Outcome {
  const sure = row.confidence === "high";
  const group: Group = {
    id: sure ? "collective" : "collective-unsure",
    source: "corpus",
    kind: "collective time",
    ...(sure ? { target: { medianError: 0.1 } } : {}),
  };
  const skip = (reason: string): Outcome => ({ group, id: row.id, skipped: reason });
  const name = text(row.parallel, "collective") || text(row.parallel, "op");
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation === undefined) return skip(`operation not covered: ${name}`);
  const bytes = number(row.parallel, "bytes");
  const ranks = number(row.parallel, "ranks");
  const bus = number(row.measured, "busbw_gbs");
  if (bytes === undefined) return skip("missing: bytes");
  if (ranks === undefined) return skip("missing: ranks");
  if (bus === undefined) return skip("missing: bus bandwidth");
  const cluster = clusterOf(row);
  if (typeof cluster === "string") return skip(cluster);
  if (ranks > cluster.devices) return skip(`${ranks} ranks on ${cluster.devices} devices`);
  const share = (ranks - 1) / ranks;
  const measured = ((operation === "all-reduce" ? 2 : 1) * share * bytes) / GBps(bus);
  const devices = Array.from({ length: ranks }, (_, i) => i);
  const predicted = collectiveTime({ operation, bytes, cluster, ranks: devices });
  const { accelerator } = hostOf(cluster, 0);
  return {
    group,
    id: row.id,
    measured,
    predicted,
    interval: interval("collective", predicted, accelerator),
  };
}
