/**
 * This machine as a cluster. Until its operators are timed it has nominal rates; then its peak is
 * the fastest product timed here, and its memory bandwidth that of the fastest element-wise operator.
 */
import { GBps, GFLOPS, type Seconds } from "@trireme/core";
import { type Pricer, measuredPricer } from "@trireme/cost-model";
import type { MeasuredLink } from "@trireme/engine";
import type { LocalHost, ResolvedRun } from "@trireme/run";
import { type Host, cpuHost, defineCluster } from "@trireme/topology";
import { type Operator, ranks, stageOperators, stages } from "@trireme/workload";
import type { Parts } from "./composition.ts";

/** Time that the timings may take together. */
const budget: Seconds = 4;

/** This machine before anything is measured. */
export function localHost(parts: Parts): LocalHost {
  const cores = parts.cores();
  return (devices) => hostWith(parts, devices, { peak: GFLOPS(20), bandwidth: GBps(10) * cores });
}

/** Rates of one core, and of the machine's memory. */
interface Rates {
  readonly peak: number;
  readonly bandwidth: number;
  /** Between two ranks; undefined until it is measured. */
  readonly link?: MeasuredLink;
}

function hostWith(parts: Parts, devices: number, rates: Rates): Host {
  const [cores, memory] = [parts.cores(), parts.memory()];
  const { peak, bandwidth: memoryBandwidth, link } = rates;
  return cpuHost({ cores, devices, peak, memory, memoryBandwidth, ...(link && { link }) });
}

/** A run on this machine with the prices of its operators as timed here. */
export interface MeasuredRun {
  readonly run: ResolvedRun;
  readonly pricer: Pricer;
  /** Operators timed. */
  readonly operators: number;
  /** Time it took. */
  readonly seconds: Seconds;
}

/** Times the operators of a run on as many cores as its ranks will keep busy. */
export async function measureRun(run: ResolvedRun, parts: Parts): Promise<MeasuredRun> {
  const begin = parts.now();
  const operators = operatorsOf(run);
  const cores = Math.min(parts.cores(), ranks(run.plan));
  const { kernels } = run.engine;
  const table = await parts.measureOperators(operators, { budget, cores, kernels });
  const devices = ranks(run.plan);
  const link = devices > 1 ? await parts.measureLink() : undefined;
  const rates = { ...ratesOf(operators, table, cores), ...(link && { link }) };
  const { name } = run.cluster;
  const cluster = defineCluster({ name, host: hostWith(parts, devices, rates), hosts: 1 });
  return {
    run: { ...run, cluster },
    pricer: measuredPricer(table),
    operators: operators.length,
    seconds: parts.now() - begin,
  };
}

/** Every kind and shape of operator of the run, once. */
function operatorsOf(run: ResolvedRun): readonly Operator[] {
  const all = stages(run.model, run.plan).flatMap(
    (stage) => stageOperators(run.model, run.plan, stage).operators,
  );
  return [...new Map(all.map((operator) => [operator.key, operator])).values()];
}

function ratesOf(
  operators: readonly Operator[],
  table: ReadonlyMap<string, Seconds>,
  cores: number,
): Rates {
  let [peak, bandwidth] = [0, 0];
  for (const operator of operators) {
    const seconds = table.get(operator.key);
    if (seconds === undefined || seconds <= 0) continue;
    if (operator.kind === "gemm") peak = Math.max(peak, operator.flops / seconds);
    if (operator.kind === "add")
      bandwidth = Math.max(bandwidth, (operator.bytes / seconds) * cores);
  }
  return { peak: peak || GFLOPS(20), bandwidth: bandwidth || GBps(10) * cores };
}
