/** `trireme train`: predicts the step, trains, and holds one against the other. */
import { join } from "node:path";
import { TriremeError, median } from "@trireme/core";
import { type Loader, type TokenDataset, createLoader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import { type RunEvent, type RunSummary, runLoop } from "@trireme/runtime";
import { type RunFolder, fileStore, runFolder } from "@trireme/runtime/node";
import type { StepSimulation } from "@trireme/simulator";
import { compare } from "@trireme/timeline";
import type { CommandArguments } from "../arguments.ts";
import type { Parts } from "../composition.ts";
import { inARow } from "../excerpt.ts";
import { InputError, RunFailure } from "../input-error.ts";
import { loadRun } from "../load-run.ts";
import { RecentSteps } from "../recent-steps.ts";
import { priceRun } from "../price-run.ts";
import { type PredictionError, predictionError } from "../report/prediction-fields.ts";
import { Progress } from "../report/progress.ts";
import { printBefore, printAfter } from "../report/training.ts";
import { lockFolders, makeRunDirectory } from "../run-directory.ts";
import { generateSample } from "../sample.ts";
import type { Terminal } from "../terminal.ts";
import type { Texts } from "../texts.ts";

/** How training is interrupted. */
export interface Interruption {
  /** Asks for a graceful stop. */
  readonly signal: AbortSignal;
  /** True once for each request to save now. */
  readonly saveRequested: () => boolean;
}

/** What a training run came to; `--json` prints it. */
export interface TrainingResult extends RunSummary {
  readonly name: string;
  readonly fingerprint: string;
  /** Undefined when no step was taken. */
  readonly prediction?: PredictionError;
  /** Prompt and continuation; undefined where the run asks for none. */
  readonly sample?: string;
  readonly files: TrainingFiles;
}

/** What a run leaves behind. */
interface TrainingFiles {
  readonly folder: string;
  readonly checkpoints: string;
  /** Measured steps; undefined when none was taken. */
  readonly trace?: string;
  /** The predicted step. */
  readonly prediction: string;
}

/** Trains and prints; resolves to whether all steps were taken. */
export async function trainCommand(
  args: CommandArguments,
  terminal: Terminal,
  parts: Parts,
  interruption: Interruption,
): Promise<boolean> {
  const loaded = await loadRun(args, parts, { withTexts: true });
  const { texts } = loaded;
  if (texts === undefined) {
    throw new InputError([`${args.file}: data: required to train: path of the text`]);
  }
  if (!loaded.local) {
    const instead = "leave cluster out to train here, or simulate";
    throw new InputError([
      `${args.file}: cluster: the embedded engine trains on this machine; ${instead}`,
    ]);
  }
  // Before anything is timed: what cannot be trained needs no prediction.
  parts.checkPlan(loaded.run.model, loaded.run.plan);
  const data = loadersOf(loaded.run, texts);
  if (args.out !== undefined) makeRunDirectory(loaded.run.name, args.out);
  const { run, options, measured } = await priceRun(loaded, parts);
  const feasible = parts.estimate(options);
  if (!feasible.ok) throw new InputError([`${run.name}: ${feasible.reason}`]);
  const predicted = parts.simulateStep(options);
  const directory = makeRunDirectory(run.name, args.out);
  const unlock = await lockFolders(directory, run.checkpoint.directory);
  let result: TrainingResult;
  try {
    if (!args.json) printBefore(terminal, { ...loaded, run }, predicted.step, measured);
    const input = { run, texts, data, directory, predicted };
    result = await train(input, { terminal, parts, interruption });
  } finally {
    await unlock();
  }
  if (args.json) terminal.out(`${JSON.stringify(result, undefined, 2)}\n`);
  else printAfter(terminal, run, result);
  return result.reason === "done";
}

/** What training is given. */
interface TrainInput {
  readonly run: ResolvedRun;
  readonly texts: Texts;
  readonly data: Loaders;
  readonly directory: string;
  readonly predicted: StepSimulation;
}

interface Loaders {
  readonly loader: Loader;
  readonly validation?: Loader;
}

interface Surroundings {
  readonly terminal: Terminal;
  readonly parts: Parts;
  readonly interruption: Interruption;
}

async function train(
  { run, texts, data, directory, predicted }: TrainInput,
  { terminal, parts, interruption }: Surroundings,
): Promise<TrainingResult> {
  const folder = runFolder(directory, run);
  const checkpoints = run.checkpoint.directory ?? folder.checkpoints;
  const progress = new Progress(terminal, parts.now);
  const recent = new RecentSteps();
  let sample: string | undefined;
  let under = false;
  const on = (event: RunEvent): void => {
    folder.record(event);
    progress.show(event);
    if (event.kind === "start") under = true;
    if (event.kind === "step") recent.add(event);
  };
  const runtime = parts.runtime();
  try {
    const summary = await runLoop({
      run,
      runtime,
      ...data,
      store: fileStore(checkpoints, { keep: run.checkpoint.keep }),
      on,
      signal: interruption.signal,
      saveRequested: interruption.saveRequested,
      ...(run.guard === undefined ? {} : { guard: run.guard }),
      async finish() {
        sample = await generateSample(run, runtime, texts.tokenizer);
      },
    });
    const files = writeTraces(folder, checkpoints, recent, predicted);
    const prediction = compared(predicted, recent, summary);
    return {
      name: run.name,
      fingerprint: run.fingerprint,
      ...summary,
      ...(prediction && { prediction }),
      ...(sample !== undefined && { sample }),
      files,
    };
  } catch (error) {
    progress.end();
    // Before the first step it is the input that was refused.
    if (under && error instanceof TriremeError)
      throw new RunFailure(error.message, { cause: error });
    throw error;
  } finally {
    folder.close();
  }
}

function loadersOf(run: ResolvedRun, texts: Texts): Loaders {
  const { validation } = texts;
  const loader = loaderOf(run, texts.train, "the text to train on");
  if (validation === undefined) return { loader };
  return { loader, validation: loaderOf(run, validation, "the text held out for validation") };
}

function loaderOf(run: ResolvedRun, dataset: TokenDataset, what: string): Loader {
  const { sequence, globalBatch, dp, microbatch } = run.plan;
  const seed = run.data?.seed ?? run.seed;
  try {
    return createLoader({ dataset, sequence, globalBatch, dp, microbatch, seed });
  } catch (error) {
    if (!(error instanceof TriremeError)) throw error;
    throw new InputError([`${run.name}: ${what}: ${error.message}`], { cause: error });
  }
}

function compared(
  predicted: StepSimulation,
  recent: RecentSteps,
  summary: RunSummary,
): PredictionError | undefined {
  if (summary.stepSeconds.length === 0) return undefined;
  const measured = median(summary.stepSeconds);
  const typical = recent.nearest(measured);
  return predictionError(predicted.step, measured, compare(predicted.timeline, typical.timeline));
}

function writeTraces(
  folder: RunFolder,
  checkpoints: string,
  recent: RecentSteps,
  predicted: StepSimulation,
): TrainingFiles {
  const last = recent.last(3);
  const prediction = folder.writeTrace("prediction.json", predicted.timeline, "predicted step");
  const files = { folder: folder.directory, checkpoints: join(checkpoints), prediction };
  if (last.length === 0) return files;
  const timeline = inARow(last.map((step) => step.timeline));
  return { ...files, trace: folder.writeTrace("trace.json", timeline, "measured steps") };
}
