/** What the loop keeps in a checkpoint beside the weights: where it was, in the run and in the data. */
import { TriremeError } from "@trireme/core";
import type { Loader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { Snapshot } from "./runtime.ts";

/** The file of a snapshot that belongs to the loop and not to the runtime. */
const stateFile = "state.json";

/** Where a run is. */
export interface Position {
  /** Steps done. */
  readonly step: number;
  /** Batches passed over: step s reads batch s + skipped. */
  readonly skipped: number;
}

/** A snapshot that has been read, taken apart. */
export interface RestoredState extends Position {
  /** What the runtime gave. */
  readonly snapshot: Snapshot;
  /** Whether a run with the same fingerprint saved it. */
  readonly sameRun: boolean;
}

interface LoopState {
  readonly version: 1;
  readonly step: number;
  readonly fingerprint: string;
  /** For `Loader.resume`. */
  readonly loader: unknown;
  /** Left out where it is 0. */
  readonly skipped?: number;
}

/** The snapshot with the loop's file added. */
export function withLoopState(
  snapshot: Snapshot,
  run: ResolvedRun,
  loader: Loader,
  skipped: number,
): Snapshot {
  const state: LoopState = {
    version: 1,
    step: snapshot.step,
    fingerprint: run.fingerprint,
    loader: loader.state(snapshot.step + skipped),
    ...(skipped === 0 ? {} : { skipped }),
  };
  const bytes = new TextEncoder().encode(`${JSON.stringify(state)}\n`);
  return { ...snapshot, files: [...snapshot.files, { name: stateFile, bytes }] };
}

/**
 * Takes a stored snapshot apart.
 * @throws TriremeError "CHECKPOINT" where it contradicts itself or is of another order of samples.
 */
export function readLoopState(snapshot: Snapshot, run: ResolvedRun, loader: Loader): RestoredState {
  const state = parseState(snapshot);
  const { skipped = 0 } = state;
  const step = loader.resume(state.loader) - skipped;
  if (step !== snapshot.step || state.step !== step) {
    throw new TriremeError(
      "CHECKPOINT",
      `the checkpoint of step ${snapshot.step} says it is of step ${state.step} and its data of step ${step}; remove it to use the one before`,
    );
  }
  const files = snapshot.files.filter((file) => file.name !== stateFile);
  const sameRun = state.fingerprint === run.fingerprint;
  return { step, skipped, sameRun, snapshot: { step, files } };
}

function parseState(snapshot: Snapshot): LoopState {
  const file = snapshot.files.find((f) => f.name === stateFile);
  if (file === undefined) {
    throw new TriremeError(
      "CHECKPOINT",
      `the checkpoint of step ${snapshot.step} has no ${stateFile}`,
    );
  }
  const text = new TextDecoder().decode(file.bytes);
  const state = parse(text);
  if (isLoopState(state)) return state;
  throw new TriremeError(
    "CHECKPOINT",
    `${stateFile} of the checkpoint of step ${snapshot.step} is damaged or of another version: ${text.trim().slice(0, 60)}`,
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isLoopState(value: unknown): value is LoopState {
  if (typeof value !== "object" || value === null) return false;
  const { version, step, fingerprint, skipped }: Partial<Record<keyof LoopState, unknown>> = value;
  return (
    version === 1 &&
    typeof step === "number" &&
    typeof fingerprint === "string" &&
    (skipped === undefined || (Number.isSafeInteger(skipped) && Number(skipped) >= 0))
  );
}
