/**
 * Batches by step number alone. The tokens are cut into samples of `sequence` + 1 that overlap by one
 * token (the label of a sample's last token is the first token of the next sample), across the ends
 * of documents. Sample order is f(seed, epoch, position), a keyed permutation per epoch, so that
 * nothing has to be replayed to reach a step, and the order does not know how many ranks read it.
 */
import { TriremeError } from "@trireme/core";
import { epochKey, keyedPermutation } from "./keyed-permutation.ts";
import type { LoadPlan } from "./load-plan.ts";
import { type LoaderIdentity, type LoaderState, stepOfState } from "./loader-state.ts";
import type { TokenDataset } from "./token-dataset.ts";
import { type TokenSource, datasetSource } from "./token-source.ts";

/** What a loader reads, and how it is dealt out. */
export interface LoaderOptions {
  /** Tokens in memory, or a stream of them in files. */
  readonly dataset: TokenDataset | TokenSource;
  /** Tokens a sample trains on; one more is read for the last label. */
  readonly sequence: number;
  /** Samples of a step over all ranks; a multiple of dp · microbatch. */
  readonly globalBatch: number;
  /** Data-parallel ranks. */
  readonly dp: number;
  /** Samples of a microbatch. */
  readonly microbatch: number;
  /** Chooses the order of the samples. */
  readonly seed: number;
}

/** The tokens of one step in global order. */
export interface Batch {
  readonly step: number;
  /** Row-major [rows, width]. */
  readonly tokens: Int32Array<ArrayBuffer>;
  /** Samples: globalBatch. */
  readonly rows: number;
  /** Tokens of a sample: sequence + 1. */
  readonly width: number;
}

/** Data of a run, addressed by step; every method is pure. */
export interface Loader {
  /** ⌊(tokens − 1) / sequence⌋; the tokens after the last whole sample are never read. */
  readonly samplesPerEpoch: number;
  /** Which sample goes to which rank, microbatch and row at `step`. */
  plan(step: number): LoadPlan;
  /** The tokens of `step`. */
  batch(step: number): Batch;
  /** What to store to go on at `step`. */
  state(step: number): LoaderState;
  /** The step of a stored state; refuses, naming what differs, a state of another order of samples. */
  resume(state: unknown): number;
}

/** A loader over a dataset. Throws when the sizes do not divide or the dataset has no whole sample. */
export function createLoader(options: LoaderOptions): Loader {
  const { dataset, sequence, globalBatch, dp, microbatch, seed } = options;
  for (const [name, value] of Object.entries({ sequence, globalBatch, dp, microbatch })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new TriremeError("LOADER", `${name} ${value} is not a positive integer`);
    }
  }
  if (!Number.isSafeInteger(seed)) {
    throw new TriremeError("LOADER", `seed ${seed} is not a safe integer; use one like 0`);
  }
  const quantum = dp * microbatch;
  if (globalBatch % quantum !== 0) {
    const nearest = Math.max(1, Math.round(globalBatch / quantum)) * quantum;
    throw new TriremeError(
      "LOADER",
      `global batch ${globalBatch} is not a multiple of dp(${dp}) x microbatch(${microbatch}) = ${quantum}; the nearest is ${nearest}`,
    );
  }
  const source = "tokens" in dataset ? datasetSource(dataset) : dataset;
  const samplesPerEpoch = Math.floor((source.length - 1) / sequence);
  if (samplesPerEpoch < 1) {
    throw new TriremeError(
      "LOADER",
      `${source.length} tokens hold no sample of sequence(${sequence}) + 1 tokens; ` +
        (source.length < 2
          ? "give at least 2 tokens"
          : `use a sequence of at most ${source.length - 1}, or more text`),
    );
  }
  const identity: LoaderIdentity = { dataset: source.fingerprint, sequence, globalBatch, seed };
  const lastStep = Math.floor(Number.MAX_SAFE_INTEGER / globalBatch) - 1;
  const checkStep = (step: number): void => {
    if (!Number.isInteger(step) || step < 0 || step > lastStep) {
      throw new TriremeError("RANGE", `step ${step} is outside 0..${lastStep}`);
    }
  };

  const plan = (step: number): LoadPlan => {
    checkStep(step);
    const first = step * globalBatch;
    const samples = new Float64Array(globalBatch);
    const epochs = new Float64Array(globalBatch);
    for (let j = 0; j < globalBatch;) {
      // From here to the end of the step or of the epoch, whichever comes first.
      const epoch = Math.floor((first + j) / samplesPerEpoch);
      const position = first + j - epoch * samplesPerEpoch;
      const end = Math.min(globalBatch, j + samplesPerEpoch - position);
      const order = keyedPermutation(samplesPerEpoch, epochKey(seed, epoch));
      epochs.fill(epoch, j, end);
      for (let k = 0; j < end; j++, k++) samples[j] = order(position + k);
    }
    const microbatches = globalBatch / quantum;
    return { step, first, samples, epochs, dp, microbatch, microbatches };
  };

  return {
    samplesPerEpoch,
    plan,
    batch(step) {
      const { samples } = plan(step);
      const width = sequence + 1;
      const out = new Int32Array(globalBatch * width);
      for (let row = 0; row < globalBatch; row++) {
        source.read(samples[row]! * sequence, out.subarray(row * width, (row + 1) * width));
      }
      return { step, tokens: out, rows: globalBatch, width };
    },
    state(step) {
      checkStep(step);
      return { version: 1, step, ...identity };
    },
    resume(state) {
      const step = stepOfState(state, identity);
      checkStep(step);
      return step;
    },
  };
}
