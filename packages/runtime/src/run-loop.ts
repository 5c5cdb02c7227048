/**
 * The run loop, written once for every runtime: restore the newest complete checkpoint, then load,
 * step, evaluate and save until the steps are done or a stop is asked for. A stop is graceful: the
 * step under way ends, the state is saved, the ranks come down.
 */
import { TriremeError, type Seconds } from "@trireme/core";
import type { Loader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { RunEvent } from "./event.ts";
import { learningRate } from "./learning-rate.ts";
import type { Position } from "./loop-state.ts";
import type { CheckpointStore, Runtime, StepResult } from "./runtime.ts";
import { LossGuard, type LossGuardOptions } from "./loss-guard.ts";
import { type RestoreContext, restoreBefore, restoreNewest, stepsOf } from "./restore.ts";
import { Saver } from "./saver.ts";

/** What the loop needs besides the run. */
export interface RunLoopOptions {
  readonly run: ResolvedRun;
  readonly runtime: Runtime;
  readonly loader: Loader;
  /** Batches of the validation loss; without it none is measured. */
  readonly validation?: Loader;
  /** Where checkpoints go and come from; without it nothing is saved or restored. */
  readonly store?: CheckpointStore;
  /** Told of everything that happens; it must not throw. */
  readonly on?: (event: RunEvent) => void;
  /** Asks for a graceful stop. */
  readonly signal?: AbortSignal;
  /** Asked after every step: true saves now. */
  readonly saveRequested?: () => boolean;
  /** Called every so many steps while the ranks wait: to generate a sample. */
  readonly sample?: {
    /** Steps from one to the next. */
    readonly every: number;
    /** `step` steps are done. */
    readonly draw: (runtime: Runtime, step: number) => Promise<void>;
  };
  /** Called once the steps are done, while the ranks are still up: to generate a sample. */
  readonly finish?: (runtime: Runtime) => Promise<void>;
  /**
   * Goes back to an earlier checkpoint when the loss spikes and stays up, and past the batches since.
   * Without it a loss that is not finite ends the run, and spikes are left alone.
   */
  readonly guard?: LossGuardOptions;
  /** Snapshots held at most, one of them being written; default 1. With 2 a save need not wait for the last. */
  readonly snapshotBuffers?: number;
}

/** What a run came to. */
export interface RunSummary {
  readonly reason: "done" | "signal";
  /** Step the loop began with: 0, or where the checkpoint stood. */
  readonly from: number;
  /** Steps done in all. */
  readonly step: number;
  /** Training loss of the first and the last step of this loop; NaN when it took none. */
  readonly firstLoss: number;
  readonly lastLoss: number;
  /** The last validation loss; undefined when none was measured. */
  readonly validationLoss?: number;
  /** Tokens trained on by this loop. */
  readonly tokens: number;
  /** Time of each step of this loop. */
  readonly stepSeconds: readonly Seconds[];
}

/**
 * Carries a run out.
 * @throws TriremeError "LOSS" when the loss is no longer finite, and whatever the runtime and the
 * store throw; the ranks come down in any case.
 */
export async function runLoop(options: RunLoopOptions): Promise<RunSummary> {
  try {
    await options.runtime.start(options.run);
    return await steps(options);
  } finally {
    await options.runtime.stop();
  }
}

async function steps(options: RunLoopOptions): Promise<RunSummary> {
  const { run, runtime, loader, store, signal, sample, finish } = options;
  const on = options.on ?? ((): void => undefined);
  checkEvery(sample?.every);
  const context = store && { store, run, runtime, loader, on };
  const saver = context && new Saver({ ...context, buffers: options.snapshotBuffers ?? 1 });
  const guard = options.guard && runtime.numeric !== false && new LossGuard(options.guard);
  const restored = context && (await restoreNewest(context));
  saver?.reserve(runtime);
  const from = restored?.step ?? 0;
  const same = restored === undefined ? {} : { sameRun: restored.sameRun };
  on({ kind: "start", from, steps: run.steps, ...same });

  const stepSeconds: Seconds[] = [];
  let [firstLoss, lastLoss, tokens] = [Number.NaN, Number.NaN, 0];
  let validationLoss: number | undefined;
  let sinceSave: Seconds = 0;
  let skipped = restored?.skipped ?? 0;
  let step = from;
  while (step < run.steps) {
    if (signal?.aborted === true) break;
    saver?.check();
    const rate = learningRate({ ...run.optimizer, steps: run.steps }, step);
    const batch = loader.batch(step + skipped);
    const result = await runtime.step({ step, batch, learningRate: rate });
    if (runtime.numeric !== false && !guard) refuseDivergence(result, step, rate);
    on({ ...result, kind: "step", step, learningRate: rate });
    stepSeconds.push(result.seconds);
    if (stepSeconds.length === 1) firstLoss = result.loss;
    lastLoss = result.loss;
    tokens += result.tokens;
    if (guard) {
      const next = await guarded({ guard, context, saver, on }, result, { step, skipped });
      if (next !== undefined) {
        [step, skipped, sinceSave] = [next.step, next.skipped, 0];
        continue;
      }
    }
    step++;
    if (step % run.evaluate.every === 0 || step === run.steps) {
      validationLoss = (await evaluate(options, step, on)) ?? validationLoss;
    }
    sinceSave += result.seconds;
    if (saveIsDue(run, step, sinceSave) || options.saveRequested?.() === true) {
      await saver?.save(runtime, { step, skipped });
      sinceSave = 0;
    }
    if (sample !== undefined && step % sample.every === 0) await sample.draw(runtime, step);
  }
  const reason = step < run.steps ? "signal" : "done";
  if (saver !== undefined && step > from && saver.saved !== step) {
    await saver.save(runtime, { step, skipped });
  }
  await saver?.flush();
  if (reason === "done") await finish?.(runtime);
  on({ kind: "stop", step, reason });
  const measured = validationLoss === undefined ? {} : { validationLoss };
  return { reason, from, step, firstLoss, lastLoss, ...measured, tokens, stepSeconds };
}

/** What the guard works with. */
interface Guarding {
  readonly guard: LossGuard;
  readonly context: RestoreContext | undefined;
  readonly saver: Saver | undefined;
  readonly on: (event: RunEvent) => void;
}

/** Lets the guard look at a step; where it goes back, to where. */
async function guarded(
  { guard, context, saver, on }: Guarding,
  { loss, gradientNorm }: StepResult,
  { step, skipped }: Position,
): Promise<Position | undefined> {
  const verdict = guard.see(step, loss, gradientNorm);
  if (verdict.kind === "healthy") return undefined;
  const reason = `step ${step}: ${verdict.reason}`;
  if (verdict.kind === "spike") {
    on({ kind: "spike", step, reason });
    return undefined;
  }
  if (context === undefined) {
    const why = "there is no store of checkpoints to go back to";
    throw new TriremeError("LOSS", `${reason}: training has diverged, and ${why}`);
  }
  await saver?.wentBack();
  const { store } = context;
  const { latest, skippedAt } = guard.goBack(await stepsOf(store), { step, skipped }, reason);
  const to = await restoreBefore(context, latest);
  const next = { step: to, skipped: skippedAt(to) };
  on({ kind: "rollback", step, to, skipped: next.skipped, reason });
  return next;
}

function checkEvery(every: number | undefined): void {
  if (every === undefined || (Number.isSafeInteger(every) && every >= 1)) return;
  throw new TriremeError("RANGE", `sample.every ${every}: it is an integer of at least 1`);
}

/** By steps, or by the time of steps: the runtime's, so that it means the same on virtual time. */
function saveIsDue({ checkpoint }: ResolvedRun, step: number, sinceSave: Seconds): boolean {
  const { every, interval } = checkpoint;
  return (
    (every !== undefined && step % every === 0) || (interval !== undefined && sinceSave >= interval)
  );
}

function refuseDivergence(result: StepResult, step: number, rate: number): void {
  const { loss, gradientNorm } = result;
  if (Number.isFinite(loss) && Number.isFinite(gradientNorm)) return;
  throw new TriremeError(
    "LOSS",
    `step ${step}: loss ${loss}, gradient norm ${gradientNorm} at learning rate ${rate}: training has diverged; lower optimizer.learningRate or lengthen optimizer.warmup`,
  );
}

/** Mean validation loss over the same batches each time, none of them twice. */
async function evaluate(
  options: RunLoopOptions,
  step: number,
  on: (event: RunEvent) => void,
): Promise<number | undefined> {
  const { run, runtime, validation } = options;
  if (validation === undefined) return undefined;
  const whole = Math.floor(validation.samplesPerEpoch / run.plan.globalBatch);
  let [sum, tokens] = [0, 0];
  for (let i = 0; i < Math.min(run.evaluate.batches, Math.max(1, whole)); i++) {
    const measured = await runtime.evaluate(validation.batch(i));
    sum += measured.loss * measured.tokens;
    tokens += measured.tokens;
  }
  const loss = sum / tokens;
  on({ kind: "evaluate", step, loss, tokens });
  return loss;
}
