/** Where a loader stands: small, versioned, and bound to what decides the order of the samples. */
import { TriremeError } from "@trireme/core";

/**
 * What decides the global order. The number of ranks and the microbatch are not here: they do not
 * change which samples a step has, so a run may resume with others.
 */
export interface LoaderIdentity {
  /** Fingerprint of the dataset. */
  readonly dataset: string;
  readonly sequence: number;
  readonly globalBatch: number;
  readonly seed: number;
}

/** What a checkpoint keeps of a loader. */
export interface LoaderState extends LoaderIdentity {
  readonly version: 1;
  /** The next step to read. */
  readonly step: number;
}

const keys = ["dataset", "sequence", "globalBatch", "seed"] as const;

/** The step of a stored state, after checking that it belongs to `identity`; else says what differs. */
export function stepOfState(state: unknown, identity: LoaderIdentity): number {
  const stored = (state ?? {}) as Partial<Record<keyof LoaderState, unknown>>;
  if (stored.version !== 1) {
    throw new TriremeError(
      "LOADER_STATE",
      `loader state has version ${JSON.stringify(stored.version)}; this loader reads version 1`,
    );
  }
  const differing = keys.filter((key) => stored[key] !== identity[key]);
  if (differing.length > 0) {
    const list = differing.map(
      (key) => `${key} ${JSON.stringify(stored[key])} there, ${JSON.stringify(identity[key])} here`,
    );
    throw new TriremeError(
      "LOADER_STATE",
      `loader state is of another order of samples: ${list.join("; ")}; resume with the same, or start anew`,
    );
  }
  const { step } = stored;
  if (typeof step !== "number" || !Number.isSafeInteger(step) || step < 0) {
    throw new TriremeError(
      "LOADER_STATE",
      `loader state has step ${JSON.stringify(step)}; it must be a non-negative integer`,
    );
  }
  return step;
}
