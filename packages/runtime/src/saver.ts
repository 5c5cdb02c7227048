/**
 * Saving behind training: the snapshot is taken before training goes on, writing it is not waited
 * for. One save is in flight at a time, and a failed one fails the run at its next turn, loudly.
 */
import { TriremeError } from "@trireme/core";
import type { ResolvedRun } from "@trireme/run";
import type { Loader } from "@trireme/dataloader";
import type { RunEvent } from "./event.ts";
import { type CheckpointStore, type Runtime, type Snapshot, snapshotBytes } from "./runtime.ts";

/** The file of a snapshot that belongs to the loop and not to the runtime. */
const stateFile = "state.json";

/** What the loop keeps in a checkpoint beside the weights. */
interface LoopState {
  readonly version: 1;
  readonly step: number;
  readonly fingerprint: string;
  /** For `Loader.resume`. */
  readonly loader: unknown;
}

export class Saver {
  readonly #store: CheckpointStore;
  readonly #run: ResolvedRun;
  readonly #loader: Loader;
  readonly #on: (event: RunEvent) => void;
  #pending: Promise<void> | undefined;
  #failure: Error | undefined;
  #saved: number | undefined;

  constructor(
    store: CheckpointStore,
    run: ResolvedRun,
    loader: Loader,
    on: (event: RunEvent) => void,
  ) {
    this.#store = store;
    this.#run = run;
    this.#loader = loader;
    this.#on = on;
  }

  /** Step of the last snapshot taken. */
  get saved(): number | undefined {
    return this.#saved;
  }

  /** Takes a snapshot after `step` steps and starts to write it, once the one before is written. */
  async save(runtime: Runtime, step: number): Promise<void> {
    await this.flush();
    const taken = await runtime.snapshot();
    if (taken.step !== step) {
      throw new TriremeError(
        "SNAPSHOT",
        `the runtime's snapshot is of step ${taken.step}, but ${step} steps are done`,
      );
    }
    const snapshot = this.#withState(taken);
    this.#saved = step;
    this.#pending = this.#write(snapshot);
  }

  /** Waits for the save in flight, and throws what made one fail. */
  async flush(): Promise<void> {
    await this.#pending;
    this.#pending = undefined;
    this.check();
  }

  /** Throws what made a save fail, without waiting. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #write(snapshot: Snapshot): Promise<void> {
    try {
      await this.#store.save(snapshot);
      this.#on({ kind: "checkpoint", step: snapshot.step, bytes: snapshotBytes(snapshot) });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const message = `the checkpoint of step ${snapshot.step} could not be saved: ${why}`;
      this.#failure = new TriremeError("CHECKPOINT", message, { cause: error });
    }
  }

  #withState(snapshot: Snapshot): Snapshot {
    const state: LoopState = {
      version: 1,
      step: snapshot.step,
      fingerprint: this.#run.fingerprint,
      loader: this.#loader.state(snapshot.step),
    };
    const bytes = new TextEncoder().encode(`${JSON.stringify(state)}\n`);
    return { step: snapshot.step, files: [...snapshot.files, { name: stateFile, bytes }] };
  }
}

/**
 * Restores the newest complete checkpoint.
 * @returns Where to go on and whether the run is the one that saved it; undefined without a checkpoint.
 * @throws TriremeError when the checkpoint is damaged or of another order of samples.
 */
export async function restoreNewest(
  store: CheckpointStore,
  run: ResolvedRun,
  runtime: Runtime,
  loader: Loader,
): Promise<{ readonly step: number; readonly sameRun: boolean } | undefined> {
  const newest = await store.newest();
  if (newest === undefined) return undefined;
  const snapshot = await store.load(newest);
  const state = readState(snapshot);
  const step = loader.resume(state.loader);
  if (step !== snapshot.step || state.step !== step) {
    throw new TriremeError(
      "CHECKPOINT",
      `the checkpoint of step ${snapshot.step} says it is of step ${state.step} and its data of step ${step}; remove it to use the one before`,
    );
  }
  const files = snapshot.files.filter((file) => file.name !== stateFile);
  await runtime.restore({ step, files });
  return { step, sameRun: state.fingerprint === run.fingerprint };
}

function readState(snapshot: Snapshot): LoopState {
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
  const { version, step, fingerprint }: Partial<Record<keyof LoopState, unknown>> = value;
  return version === 1 && typeof step === "number" && typeof fingerprint === "string";
}
