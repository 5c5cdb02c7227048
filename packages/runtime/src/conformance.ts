/**
 * What every runtime promises, as checks that its tests run: `for (const { name, check } of
 * conformance(o)) test(name, check)`. They need no test library and throw on the first broken promise.
 */
import { TriremeError } from "@trireme/core";
import type { Loader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { Runtime, Snapshot, StepResult } from "./runtime.ts";
import { SnapshotBuffer } from "./snapshot-buffer.ts";

/** What the checks run on; something small, since each check starts a runtime anew. */
export interface ConformanceOptions {
  /** A runtime that was not started. */
  readonly runtime: () => Runtime;
  readonly run: ResolvedRun;
  readonly loader: Loader;
}

/** One promise. */
export interface ConformanceCheck {
  readonly name: string;
  /** @throws TriremeError "CONFORMANCE" when the promise is broken. */
  readonly check: () => Promise<void>;
}

/** The checks for one runtime. */
export function conformance(options: ConformanceOptions): readonly ConformanceCheck[] {
  const checks: readonly (readonly [string, (o: ConformanceOptions) => Promise<void>])[] = [
    ["a step reports its number, its tokens, its time and its spans", reportsSteps],
    ["the same run takes the same steps, to the bit", isDeterministic],
    ["a snapshot counts the steps and is not changed by later ones", snapshotsAreCopies],
    ["a snapshot into memory that an earlier one was in is like any other", keepsMemory],
    ["a fresh runtime goes on from a snapshot to the bit", restores],
    ["evaluation changes nothing", evaluationChangesNothing],
    ["text is generated as asked, the same for the same seed", generates],
    ["stop is safe before start, and twice", stopsTwice],
  ];
  return checks.map(([name, check]) => ({ name, check: () => check(options) }));
}

/** Steps taken and looked at. */
const few = 3;

function promise(kept: boolean, broken: string): void {
  if (!kept) throw new TriremeError("CONFORMANCE", broken);
}

/** Starts a runtime, uses it, and stops it whatever happens. */
async function using<T>(o: ConformanceOptions, use: (r: Runtime) => Promise<T>): Promise<T> {
  const runtime = o.runtime();
  try {
    await runtime.start(o.run);
    return await use(runtime);
  } finally {
    await runtime.stop();
  }
}

async function take(
  o: ConformanceOptions,
  runtime: Runtime,
  from: number,
  to: number,
): Promise<StepResult[]> {
  const results: StepResult[] = [];
  const { learningRate } = o.run.optimizer;
  for (let step = from; step < to; step++) {
    results.push(await runtime.step({ step, batch: o.loader.batch(step), learningRate }));
  }
  return results;
}

async function reportsSteps(o: ConformanceOptions): Promise<void> {
  const { plan } = o.run;
  const expected = plan.globalBatch * plan.sequence;
  await using(o, async (runtime) => {
    for (const [i, result] of (await take(o, runtime, 0, few)).entries()) {
      const { step, tokens, seconds, timeline, loss, gradientNorm } = result;
      promise(step === i, `step ${i} reports that it is step ${step}`);
      promise(tokens === expected, `step ${i} reports ${tokens} tokens of ${expected}`);
      promise(seconds > 0 && seconds < Infinity, `step ${i} reports ${seconds} s`);
      promise(timeline.length > 0, `step ${i} has no spans`);
      if (runtime.numeric === false) continue;
      promise(Number.isFinite(loss), `step ${i} has loss ${loss}`);
      promise(gradientNorm >= 0, `step ${i} has gradient norm ${gradientNorm}`);
    }
  });
}

/** Losses and norms in a form in which NaN equals itself. */
function fingerprint(results: readonly StepResult[]): string {
  return results.map(({ loss, gradientNorm }) => `${loss} ${gradientNorm}`).join(", ");
}

async function isDeterministic(o: ConformanceOptions): Promise<void> {
  const once = fingerprint(await using(o, (runtime) => take(o, runtime, 0, few)));
  const again = fingerprint(await using(o, (runtime) => take(o, runtime, 0, few)));
  promise(once === again, `the same run gives ${once}, and ${again} when run again`);
}

function bytesOf(snapshot: Snapshot): string {
  return snapshot.files.map(({ name, bytes }) => `${name}: ${bytes.join(" ")}`).join("\n");
}

async function snapshotsAreCopies(o: ConformanceOptions): Promise<void> {
  await using(o, async (runtime) => {
    await take(o, runtime, 0, 2);
    const snapshot = await runtime.snapshot();
    promise(snapshot.step === 2, `after 2 steps the snapshot is of step ${snapshot.step}`);
    await snapshot.taken;
    const before = bytesOf(snapshot);
    await take(o, runtime, 2, 2 + few);
    promise(bytesOf(snapshot) === before, "steps after a snapshot changed its bytes");
  });
}

async function keepsMemory(o: ConformanceOptions): Promise<void> {
  await using(o, async (runtime) => {
    const buffer = new SnapshotBuffer();
    buffer.reserve(runtime.snapshotSizes?.() ?? []);
    await (
      await runtime.snapshot(buffer)
    ).taken;
    await take(o, runtime, 0, few);
    const kept = await runtime.snapshot(buffer);
    await kept.taken;
    const fresh = await runtime.snapshot();
    await fresh.taken;
    promise(bytesOf(kept) === bytesOf(fresh), "a snapshot into memory used before is another");
    const sizes = new Map(fresh.files.map(({ name, bytes }) => [name, bytes.byteLength]));
    for (const { name, size } of runtime.snapshotSizes?.() ?? []) {
      const found = sizes.get(name);
      promise(found === size, `${name} was to have ${size} bytes, and has ${found ?? "none"}`);
    }
  });
}

async function restores(o: ConformanceOptions): Promise<void> {
  const { snapshot, unbroken } = await using(o, async (runtime) => {
    await take(o, runtime, 0, 2);
    const taken = await runtime.snapshot();
    // Not waited for: a runtime that still copies must hold its update back.
    const further = fingerprint(await take(o, runtime, 2, 2 + few));
    await taken.taken;
    return { snapshot: taken, unbroken: further };
  });
  const resumed = await using(o, async (runtime) => {
    await runtime.restore(snapshot);
    return fingerprint(await take(o, runtime, 2, 2 + few));
  });
  promise(resumed === unbroken, `unbroken ${unbroken}, but resumed ${resumed}`);
}

async function evaluationChangesNothing(o: ConformanceOptions): Promise<void> {
  const without = fingerprint(await using(o, (runtime) => take(o, runtime, 0, few)));
  const withEvaluation = await using(o, async (runtime) => {
    const results: StepResult[] = [];
    for (let step = 0; step < few; step++) {
      const { tokens } = await runtime.evaluate(o.loader.batch(step + few));
      promise(tokens > 0, `an evaluation reports ${tokens} tokens`);
      results.push(...(await take(o, runtime, step, step + 1)));
    }
    return fingerprint(results);
  });
  promise(withEvaluation === without, `${without} without evaluation, ${withEvaluation} with it`);
}

async function generates(o: ConformanceOptions): Promise<void> {
  await using(o, async (runtime) => {
    if (runtime.generate === undefined) return;
    const request = { prompt: Int32Array.of(1, 2), tokens: 5, temperature: 1, seed: 3 };
    const once = await runtime.generate(request);
    const again = await runtime.generate(request);
    promise(once.length === 5, `asked for 5 tokens, got ${once.length}`);
    const { vocab } = o.run.model;
    const strange = once.find((token) => token < 0 || token >= vocab);
    promise(strange === undefined, `token ${strange} is outside of the vocabulary of ${vocab}`);
    const [first, second] = [once.join(" "), again.join(" ")];
    promise(first === second, `the same seed gives ${first}, then ${second}`);
  });
}

async function stopsTwice(o: ConformanceOptions): Promise<void> {
  await o.runtime().stop();
  const runtime = o.runtime();
  await runtime.start(o.run);
  await runtime.stop();
  await runtime.stop();
}
