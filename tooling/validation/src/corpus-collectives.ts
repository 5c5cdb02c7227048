/** Collectives measured alone, as bus bandwidth. */
import {
  type NcclEnvironment,
  type PricedOperation,
  collectiveTime,
  ncclEnvironment,
} from "@trireme/collectives";
import { GBps, type Seconds, formatPercent } from "@trireme/core";
import { hostOf } from "@trireme/topology";
import { clusterOf, elasticFabricOf } from "./corpus-hardware.ts";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";

const operations: Readonly<Record<string, PricedOperation>> = {
  all_reduce: "all-reduce",
  all_gather: "all-gather",
  reduce_scatter: "reduce-scatter",
  "all_reduce (dcn)": "all-reduce",
  all_to_all: "all-to-all",
  p2p_unidir: "send",
};

/** Bytes of a message of tests that always send the same: CUDA's sample sends 40 million ints, NVIDIA's nvbandwidth 512 MiB. */
const messages: readonly (readonly [RegExp, number])[] = [
  [/^p2pbandwidthlatencytest/i, 160e6],
  [/^nvbandwidth/i, 512 * 2 ** 20],
];

/** What the run was told: an algorithm that the row says was forced or off, and what the network's plugin sets. */
function environmentOf(row: CorpusRow): NcclEnvironment {
  const algorithm = text(row.parallel, "algo");
  const forced = /^(\w+) forced$/i.exec(algorithm)?.[1];
  const off = algorithm.includes("nccl_nvls_enable=0") ? "^nvls,nvlstree" : undefined;
  return ncclEnvironment({ NCCL_ALGO: forced ?? off, ...elasticFabricOf(row)?.variables });
}

/**
 * How the calls were made: many in one measurement, by a test of messages, or by nccl-tests without -z, do not wait for each other;
 * nccl-tests -g says how many devices one thread drives.
 */
function launchesOf({ notes }: CorpusRow): { queued: boolean; devicesPerThread?: number } {
  const tests = notes.includes("nccl-tests");
  const messageTest = messages.some(([test]) => test.test(notes));
  const queued = messageTest || /\b\d{2,}x \d/.test(notes) || (tests && !notes.includes("-z 1"));
  const devices = tests ? / -g (\d+)/.exec(notes)?.[1] : undefined;
  return devices === undefined ? { queued } : { queued, devicesPerThread: Number(devices) };
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
  const bytes =
    number(row.parallel, "bytes") ?? messages.find(([test]) => test.test(row.notes))?.[1];
  const ranks = number(row.parallel, "ranks");
  const bus = number(row.measured, "busbw_gbs");
  if (bytes === undefined) return "missing: bytes";
  if (ranks === undefined) return "missing: ranks";
  if (bus === undefined) return "missing: bus bandwidth";
  const passes = operation === "all-reduce" ? 2 : 1;
  const onBus = operation === "send" ? bytes : (passes * (ranks - 1) * bytes) / ranks;
  return { operation, bytes, ranks, onBus, seconds: onBus / GBps(bus) };
}

/** What the other rows of its sweep say of a row. */
interface Sweep {
  /**
   * Whether it took more than twice as long as a call of at least twice the bytes: the first calls of a sweep,
   * before whatever made them slow was over. Such rows are scored like any other, and say so.
   */
  readonly cold: boolean;
  /** Half a unit of the last digit that the sweep prints, GB/s. */
  readonly rounding: number;
}

/** By id of the row. */
function sweepsOf(rows: readonly CorpusRow[]): ReadonlyMap<string, Sweep> {
  const sweeps = new Map<string, { id: string; call: Call; digits: number }[]>();
  for (const row of rows) {
    const call = callOf(row);
    if (typeof call === "string") continue;
    const key = JSON.stringify([row.source, row.hardware, row.parallel["algo"], call.operation]);
    const digits = String(row.measured["busbw_gbs"]).split(".")[1]?.length ?? 0;
    sweeps.set(key, [...(sweeps.get(key) ?? []), { id: row.id, call, digits }]);
  }
  const found = new Map<string, Sweep>();
  for (const sweep of sweeps.values()) {
    const rounding = 0.5 * 10 ** -Math.max(...sweep.map((one) => one.digits));
    for (const { id, call } of sweep) {
      const cold = sweep.some(
        (other) => other.call.bytes >= 2 * call.bytes && 2 * other.call.seconds < call.seconds,
      );
      found.set(id, { cold, rounding });
    }
  }
  return found;
}

/** The outcomes of the collective rows of a corpus. */
export function collectiveOutcomes(rows: readonly CorpusRow[]): Outcome[] {
  const sweeps = sweepsOf(rows);
  return rows.map((row) => collectiveOutcome(row, sweeps.get(row.id)));
}

/** The error against the nearest figure that is printed alike, where rounding hides more than one per cent; the score is against the printed one. */
function roundedError(call: Call, predicted: Seconds, rounding: number): string {
  const bus = call.onBus / call.seconds / GBps(1);
  if (rounding <= 0.01 * bus) return "";
  const ours = call.onBus / predicted / GBps(1);
  const nearest = Math.min(Math.max(ours, bus - rounding), bus + rounding);
  return `; beyond the rounding of what is printed ${formatPercent(nearest / ours - 1)}`;
}

function collectiveOutcome(row: CorpusRow, sweep: Sweep | undefined): Outcome {
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
    ...launchesOf(row),
  });
  const bus = (time: number): string => (onBus / time / GBps(1)).toPrecision(4);
  const error = formatPercent(seconds / predicted - 1);
  const rounded = roundedError(call, predicted, sweep?.rounding ?? 0);
  const cold = sweep?.cold === true ? "; not warm: a larger call took less than half" : "";
  const { accelerator } = hostOf(cluster, 0);
  return {
    group,
    id: row.id,
    measured: seconds,
    predicted,
    claim: { kind: "collective", accelerator },
    detail: `bus GB/s ${bus(seconds)}, ours ${bus(predicted)}: ${error}${rounded}${cold}`,
  };
}
