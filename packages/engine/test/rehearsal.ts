/** Plays a schedule with sleeping actions and compares its idle time with what was predicted. */
import { type Replay, type Schedule, createSchedule, replay } from "@trireme/schedulers";
import { embeddedRuntime } from "@trireme/engine";
import { type Timeline, spans } from "@trireme/timeline";
import type { PipelineSchedule } from "@trireme/workload";
import { type Degrees, globalBatch, smallBatch, smallRun } from "./small-run.ts";

/** 20 ms for a forward and for each half of a backward. */
export const unit = 0.02;

/** After as many steps what plays them has been compiled. */
const warmUps = 200;

export interface IdleFractions {
  readonly measured: number;
  readonly predicted: number;
}

/** Share of all ranks' time in which none of their actions runs, between the first and the last. */
export async function idleFractions(degrees: Degrees, steps = 5): Promise<IdleFractions> {
  const run = smallRun({ microbatch: 1, ...degrees }, { layers: 8 });
  const runtime = embeddedRuntime({ rehearse: { F: unit, I: unit, W: unit, warmUps } });
  const fractions: number[] = [];
  try {
    await runtime.start(run);
    for (let step = 0; step < steps; step++) {
      const result = await runtime.step({ step, batch: smallBatch(step), learningRate: 0 });
      fractions.push(measuredIdle(result.timeline));
    }
  } finally {
    await runtime.stop();
  }
  // Other programs on the machine only ever add to a step: the least disturbed one counts.
  return { measured: Math.min(...fractions), predicted: predictedIdle(degrees) };
}

function measuredIdle(timeline: Timeline): number {
  let [first, last, busy] = [Infinity, -Infinity, 0];
  const ranks = new Set<number>();
  for (const span of spans(timeline)) {
    if (!computes.has(span.kind)) continue;
    first = Math.min(first, span.start);
    last = Math.max(last, span.end);
    busy += span.end - span.start;
    ranks.add(span.rank);
  }
  return 1 - busy / (ranks.size * (last - first));
}

const computes = new Set(["forward", "backward", "input-gradient", "weight-gradient"]);

/** What replay says of a plan whose actions sleep. */
function replayed(degrees: Degrees): Replay {
  return replay(scheduleOf(degrees), {
    forward: unit,
    inputGradient: unit,
    weightGradient: unit,
  });
}

function predictedIdle(degrees: Degrees): number {
  const { busy, makespan } = replayed(degrees);
  return 1 - busy.reduce((sum, b) => sum + b, 0) / (busy.length * makespan);
}

const oneChunkEach = new Set<PipelineSchedule>(["dualpipe", "chimera"]);

function scheduleOf({ schedule = "1f1b", pp = 1, vpp = 1, dp = 1 }: Degrees): Schedule {
  return createSchedule(schedule, {
    ranks: pp,
    ...(oneChunkEach.has(schedule) ? {} : { chunks: vpp }),
    microbatches: globalBatch / dp,
  });
}
