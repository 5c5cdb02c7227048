/**
 * A run of weeks or months on virtual time. What fails is drawn from `fault-tolerance`'s models, and
 * what is done about it is decided by its controller; this adds what it all takes: steps at the pace of
 * the slowest, saves through a storage, restarts by their parts; and accounts for every second.
 */
import type { Seconds } from "@trireme/core";
import { type ControllerRecord, effectiveTrainingTime } from "@trireme/fault-tolerance";
import { type GenerationSpan, type Restart, playRun } from "@trireme/fault-tolerance/simulation";
import { elasticPlan } from "./elastic-plan.ts";
import {
  Causes,
  type Interruption,
  interruptionsOf,
  lostTime,
  standstill,
} from "./interruptions.ts";
import { type BegunRestart, type Outage, type OutagePhase, outagesOf } from "./outages.ts";
import { type RunBill, runBill } from "./run-bill.ts";
import type { SaveTimes } from "./checkpoint-storage.ts";
import { runFaults } from "./run-faults.ts";
import { type PreparedRun, type RunOptions, prepareRun } from "./run-options.ts";
import { RunPace } from "./run-pace.ts";
import { restartTimes } from "./startup.ts";

/** What the time of a run went to. */
export type RunCategory = "training" | "lost" | "checkpoint" | "standstill" | OutagePhase;

/** What a run comes to. */
export interface RunSimulation {
  /** The horizon, or when the controller stopped the run. */
  readonly end: Seconds;
  /** Why it stopped; undefined where it went on to the horizon. */
  readonly stopped?: string;
  /** Steps committed at the end, and tokens of them. */
  readonly steps: number;
  readonly tokens: number;
  /** Steps that were done and not kept. */
  readonly lostSteps: number;
  /** Time of kept steps over all time. */
  readonly ettr: number;
  /** What the kept steps would have taken with all hosts and nobody slow, over all time. */
  readonly goodput: number;
  /** Time by what it went to; it sums to `end`. */
  readonly time: Readonly<Record<RunCategory, Seconds>>;
  /** What of training was due to slow or missing hosts: what kept steps took beyond that. */
  readonly slowed: Seconds;
  readonly interruptions: readonly Interruption[];
  /** By cause: interruptions, and their time down and lost, most first. */
  readonly causes: readonly CauseTotal[];
  readonly bill: RunBill;
  readonly record: ControllerRecord;
  /** Generations, phases between their training, and the saves in it: what a timeline is made from. */
  readonly spans: readonly GenerationSpan[];
  readonly outages: readonly Outage[];
  readonly save: SaveTimes;
}

export interface CauseTotal {
  readonly cause: string;
  readonly count: number;
  readonly time: Seconds;
}

/**
 * Simulates one run; the same seed gives the same run.
 * @throws TriremeError what `prepareRun` and the failure models refuse.
 */
export function simulateRun(options: RunOptions & { readonly seed: number }): RunSimulation {
  return playPrepared(prepareRun(options), options.seed);
}

/** The same from what is worked out once. */
export function playPrepared(run: PreparedRun, seed: number): RunSimulation {
  const { options, controller, steps, storage, save, step, heartbeat, leave, replacement } = run;
  const { cluster, model, plan, horizon, startup = {} } = options;
  const { incidents, disturbances } = runFaults(cluster, options, { seed, until: horizon });
  const pace = new RunPace(steps, disturbances, options.drift);
  const causes = new Causes(incidents);
  const restarts = new Map<number, BegunRestart>();
  let rollbacks = 0;
  const start = (restart: Restart): Seconds => {
    const { record, at } = restart;
    const members = record.members.length;
    const stale = record.rollbacks > rollbacks;
    ({ rollbacks } = record);
    const devices = Math.min(members * run.devices, plan.tp * plan.cp * plan.dp * plan.pp);
    const own = elasticPlan(model, plan, devices);
    const input = { startup, storage, plan: own, step: steps.time(members), stale };
    const parts = restartTimes(input, restart);
    restarts.set(record.generation, { at, ...parts });
    return parts.launch + parts.groups + parts.load + parts.recompute;
  };
  const { record, end, productive, spans } = playRun({
    options: controller,
    times: { heartbeat, step: pace, checkpoint: save, leave, start, repair: replacement },
    incidents,
    horizon,
    on(decision) {
      pace.decided(decision);
      causes.decided(decision);
    },
  });
  const outages = outagesOf(spans, restarts, heartbeat + leave);
  const time = timeOf(spans, outages);
  const ideal = record.committed * step;
  const tokens = record.committed * plan.globalBatch * plan.sequence;
  const interruptions = interruptionsOf(spans, outages, causes, end);
  return {
    end,
    ...(record.reason === undefined ? {} : { stopped: record.reason }),
    steps: record.committed,
    tokens,
    lostSteps: spans.reduce((sum, each) => sum + each.done - each.step + 1, -record.committed),
    ettr: productive / end,
    goodput: effectiveTrainingTime(record.committed, step, end),
    time,
    slowed: productive - ideal,
    interruptions,
    causes: totals(interruptions),
    bill: runBill(deviceTime(run, spans, end), run.power, tokens, options),
    record,
    spans,
    outages,
    save,
  };
}

function timeOf(
  spans: readonly GenerationSpan[],
  outages: readonly Outage[],
): Record<RunCategory, Seconds> {
  const all: Record<RunCategory, Seconds> = {
    training: 0,
    lost: 0,
    checkpoint: 0,
    standstill: 0,
    join: 0,
    launch: 0,
    groups: 0,
    load: 0,
    recompute: 0,
    detect: 0,
    halt: 0,
    wait: 0,
  };
  for (const { what, start, end } of outages) all[what] += end - start;
  for (const span of spans) {
    all.training += span.productive;
    all.checkpoint += span.saving;
    all.standstill += standstill(span);
    all.lost += lostTime(span);
  }
  return all;
}

function totals(interruptions: readonly Interruption[]): readonly CauseTotal[] {
  const all = new Map<string, { cause: string; count: number; time: Seconds }>();
  for (const { cause, down, lost } of interruptions) {
    const total = all.get(cause) ?? { cause, count: 0, time: 0 };
    all.set(cause, total);
    total.count++;
    total.time += down + lost;
  }
  return [...all.values()].toSorted((a, b) => b.time - a.time);
}

/** Members train, and wait in collectives until a fault is noticed; all else, and whoever else, idles. */
function deviceTime(
  { options, devices }: PreparedRun,
  spans: readonly GenerationSpan[],
  end: Seconds,
): { training: Seconds; waiting: Seconds; idle: Seconds } {
  let training = 0;
  let waiting = 0;
  for (const { members, began, stopped, ended } of spans) {
    training += members * Math.max(0, stopped - began);
    waiting += members * Math.max(0, ended - stopped);
  }
  const all = options.cluster.hosts * end;
  return {
    training: training * devices,
    waiting: waiting * devices,
    idle: (all - training - waiting) * devices,
  };
}
