/** Collectives measured alone, as bus bandwidth. */
import {
  type NcclEnvironment,
  type PricedOperation,
  collectiveTime,
  ncclEnvironment,
} from "@trireme/collectives";
import { GBps, formatPercent } from "@trireme/core";
import { interval } from "@trireme/cost-model";
import { hostOf } from "@trireme/topology";
import { clusterOf, elasticFabricOf } from "./corpus-hardware.ts";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";

const operations: Readonly<Record<string, PricedOperation>> = {
  all_reduce: "all-reduce",
  all_gather: "all-gather",
  reduce_scatter: "reduce-scatter",
  all_to_all: "all-to-all",
};

/** What the run was told: an algorithm that the row says was forced or off, and what the network's plugin sets. */
function environmentOf(row: CorpusRow): NcclEnvironment {
  const algorithm = text(row.parallel, "algo");
  const forced = /^(\w+) forced$/i.exec(algorithm)?.[1];
  const off = algorithm.includes("nccl_nvls_enable=0") ? "^nvls,nvlstree" : undefined;
  return ncclEnvironment({ NCCL_ALGO: forced ?? off, ...elasticFabricOf(row)?.variables });
}

/** Bytes, ranks and seconds of a row; the bus bandwidth of nccl-tests turned back into time. */
interface Call {
  readonly operation: PricedOperation;
  readonly bytes: number;
  readonly ranks: number;
  /** Bytes on the bus of one rank. */
  readonly onBus: number;
  readonly seconds: number;
}

/** The call, or the name of what is missing. */
function callOf(row: CorpusRow): Call | string {
  const name = text(row.parallel, "collective") || text(row.parallel, "op");
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation === undefined) return `operation not covered: ${name}`;
  const bytes = number(row.parallel, "bytes");
  const ranks = number(row.parallel, "ranks");
  const bus = number(row.measured, "busbw_gbs");
  if (bytes === undefined) return "missing: bytes";
  if (ranks === undefined) return "missing: ranks";
  if (bus === undefined) return "missing: bus bandwidth";
  const onBus = ((operation === "all-reduce" ? 2 : 1) * (ranks - 1) * bytes) / ranks;
  return { operation, bytes, ranks, onBus, seconds: onBus / GBps(bus) };
}

/**
 * Rows that took more than twice as long as a call of at least twice the bytes in the same sweep: the
 * first calls of a sweep that set up connections while the clock ran. They are scored like any other, and say so.
 */
function coldRows(rows: readonly CorpusRow[]): ReadonlySet<string> {
  const sweeps = new Map<string, { id: string; call: Call }[]>();
  for (const row of rows) {
    const call = callOf(row);
    if (typeof call === "string") continue;
    const key = JSON.stringify([row.source, row.hardware, row.parallel["algo"], call.operation]);
    sweeps.set(key, [...(sweeps.get(key) ?? []), { id: row.id, call }]);
  }
  const cold = new Set<string>();
  for (const sweep of sweeps.values()) {
    for (const { id, call } of sweep) {
      const warm = sweep.some(
        (other) => other.call.bytes >= 2 * call.bytes && 2 * other.call.seconds < call.seconds,
      );
      if (warm) cold.add(id);
    }
  }
  return cold;
}

/** The outcomes of the collective rows of a corpus. */
export function collectiveOutcomes(rows: readonly CorpusRow[]): Outcome[] {
  const cold = coldRows(rows);
  return rows.map((row) => collectiveOutcome(row, cold.has(row.id)));
}

function collectiveOutcome(row: CorpusRow, cold: boolean): Outcome {
  const sure = row.confidence === "high";
  const group: Group = {
    id: sure ? "collective" : "collective-unsure",
    source: "corpus",
    kind: "collective time",
    everyRow: true,
    ...(sure ? { target: { medianError: 0.1, maxError: 0.3 } } : {}),
  };
  const skip = (reason: string): Outcome => ({ group, id: row.id, skipped: reason });
  const call = callOf(row);
  if (typeof call === "string") return skip(call);
  const { operation, bytes, ranks, onBus, seconds } = call;
  const cluster = clusterOf(row);
  if (typeof cluster === "string") return skip(cluster);
  if (ranks > cluster.devices) return skip(`${ranks} ranks on ${cluster.devices} devices`);
  const predicted = collectiveTime({
    operation,
    bytes,
    cluster,
    ranks: Array.from({ length: ranks }, (_, i) => i),
    environment: environmentOf(row),
    // Many calls in one measurement do not wait for each other.
    queued: /\b\d{2,}x \d/.test(row.notes),
  });
  const bus = (time: number): string => (onBus / time / GBps(1)).toPrecision(4);
  const error = formatPercent(seconds / predicted - 1);
  const note = cold ? "; not warm: a larger call took less than half" : "";
  const { accelerator } = hostOf(cluster, 0);
  return {
    group,
    id: row.id,
    measured: seconds,
    predicted,
    interval: interval("collective", predicted, accelerator),
    detail: `bus GB/s ${bus(seconds)}, ours ${bus(predicted)}: ${error}${note}`,
  };
}
