/**
 * The runtime on virtual time: carries a run out step by step without computing a number of it.
 * What it tells is when things happen; losses and norms are NaN, since nothing is learned.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import type { Pricer } from "@trireme/cost-model";
import type { Batch } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { Evaluation, Runtime, Snapshot, StepInput, StepResult } from "@trireme/runtime";
import { type StepSimulation, simulateStep } from "./step/simulate-step.ts";

/** A runtime that also tells its clock and what its steps look like. */
export interface SimulatedRuntime extends Runtime {
  /** It computes no losses: they are NaN. */
  readonly numeric: false;
  /** Virtual time since `start`: the sum of the steps done. */
  readonly clock: Seconds;
  /** The step that it repeats; undefined before `start`. */
  readonly simulation: StepSimulation | undefined;
}

/** How a simulated runtime prices operators; by the roofline of the cluster's device when left out. */
export interface SimulatedRuntimeOptions {
  readonly pricer?: Pricer;
}

const stateFile = "simulator.safetensors";

/**
 * A runtime that simulates: `step` returns at once with the seconds the step would take and its
 * timeline, loss and gradient norm NaN. Every step takes the same time. A snapshot holds step and
 * clock only.
 */
export function simulatedRuntime(options: SimulatedRuntimeOptions = {}): SimulatedRuntime {
  return new VirtualTime(options);
}

class VirtualTime implements SimulatedRuntime {
  readonly numeric = false;
  readonly #options: SimulatedRuntimeOptions;
  #run: ResolvedRun | undefined;
  #simulation: StepSimulation | undefined;
  #steps = 0;
  #clock: Seconds = 0;

  constructor(options: SimulatedRuntimeOptions) {
    this.#options = options;
  }

  get clock(): Seconds {
    return this.#clock;
  }

  get simulation(): StepSimulation | undefined {
    return this.#simulation;
  }

  async start(run: ResolvedRun): Promise<void> {
    const { model, plan, cluster } = run;
    this.#simulation = simulateStep({ model, plan, cluster, ...this.#options });
    this.#run = run;
    this.#steps = 0;
    this.#clock = 0;
  }

  async step({ step, batch }: StepInput): Promise<StepResult> {
    const { simulation, tokens } = this.#started(batch);
    this.#steps = step + 1;
    this.#clock += simulation.step;
    const { timeline } = simulation;
    return {
      step,
      loss: Number.NaN,
      tokens,
      seconds: simulation.step,
      gradientNorm: Number.NaN,
      timeline: { ...timeline, step: new Int32Array(timeline.length).fill(step) },
    };
  }

  async evaluate(batch: Batch): Promise<Evaluation> {
    return { loss: Number.NaN, tokens: this.#started(batch).tokens };
  }

  async snapshot(): Promise<Snapshot> {
    const metadata = { clock: String(this.#clock) };
    return {
      step: this.#steps,
      files: [{ name: stateFile, bytes: encodeSafetensors([], metadata) }],
    };
  }

  async restore(snapshot: Snapshot): Promise<void> {
    const file = snapshot.files.find(({ name }) => name === stateFile);
    if (file === undefined) {
      const names = snapshot.files.map(({ name }) => name).join(", ") || "none";
      throw new TriremeError(
        "SNAPSHOT",
        `snapshot has no file ${stateFile} (files: ${names}): it is of another runtime`,
      );
    }
    const clock = Number(decodeSafetensors(file.bytes).metadata["clock"]);
    if (!(clock >= 0 && clock < Infinity)) {
      throw new TriremeError(
        "SNAPSHOT",
        `${stateFile} has clock ${clock}: it must be a time of at least 0`,
      );
    }
    this.#steps = snapshot.step;
    this.#clock = clock;
  }

  async stop(): Promise<void> {
    this.#run = undefined;
  }

  #started(batch: Batch): { simulation: StepSimulation; tokens: number } {
    const run = this.#run;
    const simulation = this.#simulation;
    if (run === undefined || simulation === undefined) {
      throw new TriremeError(
        "RUNTIME",
        "the simulated runtime is not started: call start(run) first",
      );
    }
    const { globalBatch, sequence } = run.plan;
    if (batch.rows !== globalBatch || batch.width !== sequence + 1) {
      throw new TriremeError(
        "BATCH",
        `batch of ${batch.rows} rows of ${batch.width} tokens, but the plan takes ${globalBatch} (globalBatch) of ${sequence + 1} (sequence + 1)`,
      );
    }
    return { simulation, tokens: globalBatch * sequence };
  }
}
