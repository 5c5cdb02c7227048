/**
 * Evaluation of a checkpoint on many data sets, as Acme decouples it (Hu et al., Characterization of
 * Large Language Model Development in the Datacenter, NSDI 2024, §6.2): the model is loaded once a host
 * into shared memory, not by every trial; metrics are computed by processor jobs while the GPU goes on;
 * and trials are packed by their expected times, long data sets cut in parts, the longest first.
 */
import { Heap, type Seconds, TriremeError } from "@trireme/core";

/** A data set to evaluate on. */
export interface EvaluationSet {
  readonly name: string;
  /** Inference on one GPU, as it was the last time. */
  readonly inference: Seconds;
  /** Metrics (programs run, answers judged) on processors, after the inference. */
  readonly metric: Seconds;
}

/** What an evaluation runs on. */
export interface EvaluationOptions {
  readonly sets: readonly EvaluationSet[];
  readonly hosts: number;
  readonly gpusPerHost: number;
  /** One model from remote storage by one process; loads at the same time share its bandwidth. */
  readonly load: Seconds;
  /** The same from the host's shared memory. */
  readonly loadFromMemory: Seconds;
  /** Processor jobs that compute metrics at once; without limit when left out. */
  readonly metricJobs?: number;
  /** Parts of a data set are no shorter; 60 s when left out. */
  readonly leastPart?: Seconds;
}

/** An evaluation from start to end. */
export interface Evaluation {
  readonly makespan: Seconds;
  /** GPU-seconds held, and what of them was inference. */
  readonly held: number;
  readonly inference: number;
  /** Trials that were run. */
  readonly trials: number;
}

interface Trial {
  readonly inference: Seconds;
  readonly metric: Seconds;
}

/**
 * Every data set is a trial of its own on one GPU, which loads the model, infers, and waits for the
 * metric; trials start in order as GPUs come free. Loads at the start go side by side on all GPUs and
 * slow each other down.
 */
export function coupledEvaluation(o: EvaluationOptions): Evaluation {
  check(o);
  const gpus = o.hosts * o.gpusPerHost;
  const together = Math.min(gpus, o.sets.length);
  // As many loads as trials run at once share the storage, on average.
  const load = o.load * Math.max(1, together / o.hosts);
  return place(o.sets, gpus, (t) => load + t.inference + t.metric);
}

/** The same decoupled: one load a host, metrics elsewhere, parts packed longest first. */
export function decoupledEvaluation(o: EvaluationOptions): Evaluation {
  check(o);
  const gpus = o.hosts * o.gpusPerHost;
  const parts = elasticParts(o, gpus);
  const placed = place(parts, gpus, (t) => o.loadFromMemory + t.inference);
  // Metrics begin when inference ends; the longest runs of them are waited for.
  const ends = placed.ends.map((end, i) => ({ at: o.load + end, metric: parts[i]!.metric }));
  const makespan = metricsEnd(ends, o.metricJobs ?? Infinity);
  const { inference, trials } = placed;
  return { makespan, held: placed.held + o.load * gpus, inference, trials };
}

/** Data sets in parts of at most an even share of a GPU, the longest first. */
function elasticParts(o: EvaluationOptions, gpus: number): Trial[] {
  const total = o.sets.reduce((sum, s) => sum + s.inference, 0);
  const share = Math.max(o.leastPart ?? 60, total / gpus);
  return o.sets
    .flatMap(({ inference, metric }) => {
      const count = Math.max(1, Math.ceil(inference / share));
      return Array.from({ length: count }, () => ({
        inference: inference / count,
        metric: metric / count,
      }));
    })
    .sort((a, b) => b.inference + b.metric - (a.inference + a.metric));
}

/** Trials in order, each on the GPU that is free first. */
function place(
  trials: readonly Trial[],
  gpus: number,
  time: (t: Trial) => Seconds,
): Evaluation & { readonly ends: readonly Seconds[] } {
  const free = new Heap<Seconds>((a, b) => a < b);
  for (let gpu = 0; gpu < gpus; gpu++) free.push(0);
  let [held, inference, makespan] = [0, 0, 0];
  const ends = trials.map((t) => {
    const end = free.pop()! + time(t);
    free.push(end);
    held += time(t);
    inference += t.inference;
    makespan = Math.max(makespan, end);
    return end;
  });
  return { makespan, held, inference, trials: trials.length, ends };
}

function metricsEnd(
  ends: readonly { readonly at: Seconds; readonly metric: Seconds }[],
  jobs: number,
): Seconds {
  const busy = new Heap<Seconds>((a, b) => a < b);
  let last = 0;
  for (const { at, metric } of [...ends].sort((a, b) => a.at - b.at)) {
    const from = busy.size < jobs ? at : Math.max(at, busy.pop()!);
    busy.push(from + metric);
    last = Math.max(last, from + metric);
  }
  return last;
}

function check(o: EvaluationOptions): void {
  for (const [what, n] of [
    ["hosts", o.hosts],
    ["gpusPerHost", o.gpusPerHost],
    ["metricJobs", o.metricJobs ?? 1],
  ] as const) {
    if (!Number.isSafeInteger(n) || n < 1) {
      throw new TriremeError("EVALUATION", `${what} ${n}: give an integer from 1 up`);
    }
  }
  const times = o.sets.flatMap((s) => [s.inference, s.metric]).concat(o.load, o.loadFromMemory);
  const wrong = times.find((t) => !(t >= 0 && t < Infinity));
  if (wrong !== undefined) {
    throw new TriremeError("EVALUATION", `time ${wrong} s: give finite times from 0 up`);
  }
}
