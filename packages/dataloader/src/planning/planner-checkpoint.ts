/**
 * What a checkpoint keeps of a loader with many sources: the planner's state, small and written every
 * time, and with it the latest snapshots of those sources that cannot be read anywhere, taken rarely
 * and replayed from. It names what decides the order; ranks are not in it.
 */
import { TriremeError } from "@trireme/core";
import type { SourceSnapshot } from "../sources/sample-source.ts";
import type { MixState } from "./mixer.ts";
import type { PlannerState } from "./planner.ts";

/** What decides which samples a step has. */
export interface MultiSourceIdentity {
  /** Fingerprint of each source, by name. */
  readonly sources: Readonly<Record<string, string>>;
  readonly globalBatch: number;
  readonly seed: number;
  /** Tokens of a row. */
  readonly sequence: number;
}

/** A loader's checkpoint: JSON. */
export interface MultiSourceState extends MultiSourceIdentity {
  readonly version: 1;
  readonly planner: PlannerState;
  /** By source; none for sources that are read anywhere. */
  readonly snapshots: Readonly<Record<string, SourceSnapshot>>;
}

/**
 * The planner's state and snapshots of a stored state, after checking that it is of the same data and
 * order; else says all that differs. Weights may change from there on, ranks and workers as well.
 * @throws TriremeError "LOADER_STATE"
 */
export function restoreMultiSource(
  stored: unknown,
  identity: MultiSourceIdentity,
): Pick<MultiSourceState, "planner" | "snapshots"> {
  const state = (stored ?? {}) as Partial<MultiSourceState>;
  const fail = (reason: string): never => {
    throw new TriremeError("LOADER_STATE", reason);
  };
  if (state.version !== 1) {
    fail(`loader state has version ${JSON.stringify(state.version)}; this loader reads version 1`);
  }
  const differing: string[] = [];
  for (const key of ["globalBatch", "seed", "sequence"] as const) {
    if (state[key] !== identity[key])
      differing.push(`${key} ${JSON.stringify(state[key])} there, ${identity[key]} here`);
  }
  const there = state.sources ?? {};
  for (const name of new Set([...Object.keys(there), ...Object.keys(identity.sources)])) {
    const [a, b] = [there[name], identity.sources[name]];
    if (a !== b) {
      differing.push(
        a === undefined || b === undefined
          ? `source ${name} only ${a === undefined ? "here" : "there"}`
          : `source ${name} has other data`,
      );
    }
  }
  // A mixture counts by place in the list, so the order of names matters as well.
  if (differing.length === 0 && Object.keys(there).join() !== Object.keys(identity.sources).join())
    differing.push("the sources come in another order");
  if (differing.length > 0) {
    fail(
      `loader state is of another order of samples: ${differing.join("; ")}; resume with the same, or start anew`,
    );
  }
  const { planner, snapshots } = state;
  const names = Object.keys(identity.sources);
  const listed = (list: unknown, is: (n: unknown) => boolean): boolean =>
    Array.isArray(list) && list.length === names.length && list.every(is);
  const isCount = (n: unknown): boolean => Number.isSafeInteger(n) && Number(n) >= 0;
  // A file may hold anything under these names.
  const mix: Partial<Record<keyof MixState, unknown>> = planner?.mix ?? {};
  if (
    planner === undefined ||
    !isCount(planner.step) ||
    mix.position !== planner.step * identity.globalBatch ||
    !listed(mix.taken, isCount) ||
    !listed(mix.due, Number.isFinite) ||
    !listed(mix.weights, Number.isFinite) ||
    !isCount(mix.since) ||
    planner.mix.since > planner.mix.position ||
    planner.mix.taken.reduce((a, b) => a + b, 0) !== mix.position
  ) {
    fail(
      `loader state is damaged: step ${JSON.stringify(planner?.step)} with ${JSON.stringify(mix.position)} samples drawn, counted over ${names.length} sources`,
    );
  }
  for (const [name, snapshot] of Object.entries(snapshots ?? {})) {
    const position: unknown = (snapshot as Partial<SourceSnapshot> | null)?.position;
    if (!isCount(position)) {
      fail(
        `loader state is damaged: the snapshot of source ${name} is at position ${JSON.stringify(position)}`,
      );
    }
  }
  return { planner: planner!, snapshots: snapshots ?? {} };
}
