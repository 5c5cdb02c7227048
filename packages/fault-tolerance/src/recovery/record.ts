/** The controller's durable state, and its form on disk. */
import { TriremeError, type Seconds } from "@trireme/core";

import type { Spike } from "./spike.ts";

/** Why a run stopped. */
export type StopKind =
  | "crash-loop"
  | "diverged"
  | "no-checkpoint"
  | "too-few-hosts"
  | "unfenced"
  | "deaf";

/** All that must outlive the controller: store it before sending the orders that follow from it. */
export interface ControllerRecord {
  readonly phase: "training" | "halting" | "stopped";
  readonly generation: number;
  /** Steps committed: saved by every member. Goes back only by a rollback, which is counted. */
  readonly committed: number;
  /** By rank. */
  readonly members: readonly number[];
  readonly standbys: readonly number[];
  /** Evicted hosts with the evidence against each. */
  readonly evicted: ReadonlyMap<number, string>;
  /** Software faults since the last committed step. */
  readonly attempts: number;
  /** Members of the last generation that trained, by rank, evicted ones included. */
  readonly layout: readonly number[];
  /** Committed steps that can be restored, ascending. */
  readonly saves: readonly number[];
  /** Batches skipped so far: step s trains batch s + skip. */
  readonly skip: number;
  /** Times training went back below a committed step after a loss spike. */
  readonly rollbacks: number;
  readonly spike?: Spike;
  /** Whether members are to check themselves when they have left. */
  readonly check: boolean;
  /** Version of the code; 0 is the one the run began with. */
  readonly version: number;
  /** The version before, until a step is committed on the new one. */
  readonly previous?: number;
  /** An update that waits for an interruption, `due` at the latest. */
  readonly pending?: { readonly version: number; readonly due: Seconds };
  readonly stop?: StopKind;
  readonly reason?: string;
}

/** The record of a run that begins: generation 1 trains step 1. */
export function firstRecord(
  hosts: readonly number[],
  standbys: readonly number[],
): ControllerRecord {
  return {
    phase: "training",
    generation: 1,
    committed: 0,
    members: hosts,
    standbys,
    evicted: new Map(),
    attempts: 0,
    layout: hosts,
    saves: [0],
    skip: 0,
    rollbacks: 0,
    check: false,
    version: 0,
  };
}

/** One line of JSON; `decodeRecord` gives an equal record back. */
export function encodeRecord(record: ControllerRecord): string {
  return JSON.stringify({ format: 1, ...record, evicted: [...record.evicted] });
}

/** @throws TriremeError "RECORD" for text that `encodeRecord` did not write. */
export function decodeRecord(text: string): ControllerRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TriremeError("RECORD", `a controller record is no JSON: ${text.slice(0, 60)}`, {
      cause,
    });
  }
  if (!isRecord(value)) {
    throw new TriremeError(
      "RECORD",
      `a controller record of format 1 was expected, not ${text.slice(0, 60)}`,
    );
  }
  const { format: _, ...fields } = value;
  const whole = ["generation", "committed", "attempts", "skip", "rollbacks", "version"] as const;
  const lists = ["members", "standbys", "evicted", "layout", "saves"] as const;
  const wrong =
    whole.find((name) => !Number.isSafeInteger(fields[name])) ??
    lists.find((name) => !Array.isArray(fields[name])) ??
    (fields.evicted.every((each) => Array.isArray(each)) ? undefined : "evicted") ??
    (["training", "halting", "stopped"].includes(fields.phase) ? undefined : "phase");
  if (wrong !== undefined) {
    const found = JSON.stringify(fields[wrong]) ?? "missing";
    throw new TriremeError("RECORD", `${wrong} of a controller record is ${found}: it is damaged`);
  }
  return { ...fields, evicted: new Map(fields.evicted) };
}

type StoredRecord = Omit<ControllerRecord, "evicted"> & {
  readonly format: 1;
  readonly evicted: readonly (readonly [number, string])[];
};

function isRecord(value: unknown): value is StoredRecord {
  return typeof value === "object" && value !== null && "format" in value && value.format === 1;
}
