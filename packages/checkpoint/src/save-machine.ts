/**
 * Asynchronous saves as a state machine that only decides: events in, orders out, no clock and no file.
 * A save has two stages (MegaScale, NSDI 2024): every rank's state is copied from device
 * to a host buffer while training waits, and from there made durable while training goes on. Training
 * resumes after the copy and not before, so that nothing it does later reaches a checkpoint; one
 * checkpoint is made durable at a time, in the order they were taken.
 *
 *     request → snapshot → (training resumes) → list → prepare → write by every writer → finish → saved
 */
import { TriremeError } from "@trireme/core";
import { type CommitPhases, type FileOperation, commitPhases } from "./commit-plan.ts";
import type { MarkedFile } from "./marker.ts";
import type { SaveEvent, SaveOrder } from "./save-event.ts";

/** What the machine is for. */
export interface SaveMachineOptions {
  /** The directory of all checkpoints. */
  readonly directory: string;
  /** Checkpoints to keep; at least 1. */
  readonly keep: number;
  /** Ranks (or hosts) that write files of their own; default 1. */
  readonly writers?: number;
  /** Host buffers for snapshots; default 1. With 2 a snapshot is taken while the last is written. */
  readonly buffers?: number;
  /** False for an object store; see `CommitOptions`. Default true. */
  readonly renames?: boolean;
}

interface Held {
  readonly step: number;
  readonly buffer: number;
}

/** What makes one checkpoint durable. */
type Commit = Held &
  (
    | { readonly phase: "list" }
    | { readonly phase: "prepare"; readonly phases: CommitPhases; readonly next: number }
    | {
        readonly phase: "write";
        readonly phases: CommitPhases;
        /** By writer: its files, what made it fail, or undefined while it writes. */
        readonly reports: readonly (readonly MarkedFile[] | string | undefined)[];
      }
    | {
        readonly phase: "finish";
        readonly phases: CommitPhases;
        readonly operations: readonly FileOperation[];
        readonly durable: number;
        readonly next: number;
      }
    | { readonly phase: "clean"; readonly reason: string }
  );

/** The state of the machine: plain data. */
export interface SaveState {
  readonly options: Required<SaveMachineOptions>;
  /** The step for which training waits, before or in the copy to the host. */
  readonly waiting: number | undefined;
  /** The copy that is under way. */
  readonly snapshot: Held | undefined;
  /** Snapshots whose turn to be made durable has not come, oldest first. */
  readonly held: readonly Held[];
  readonly commit: Commit | undefined;
}

/** The machine before its first event. Throws `CHECKPOINT` on counts below 1. */
export function startSaving(options: SaveMachineOptions): SaveState {
  const { writers = 1, buffers = 1, renames = true, directory, keep } = options;
  for (const [name, value] of Object.entries({ keep, writers, buffers })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TriremeError("CHECKPOINT", `${name} ${value}: it is an integer of at least 1`);
  }
  if (directory === "")
    throw new TriremeError("CHECKPOINT", 'the directory is ""; use "." for the current one');
  return {
    options: { directory, keep, writers, buffers, renames },
    waiting: undefined,
    snapshot: undefined,
    held: [],
    commit: undefined,
  };
}

/** Whether nothing is under way: all that was asked for is durable or has failed. */
export function isSaveIdle({ waiting, snapshot, held, commit }: SaveState): boolean {
  return (waiting ?? snapshot ?? commit) === undefined && held.length === 0;
}

/** The next state, and what to do now. Throws `CHECKPOINT` for an event that cannot be in this state. */
export function advanceSave(
  state: SaveState,
  event: SaveEvent,
): { readonly state: SaveState; readonly orders: readonly SaveOrder[] } {
  const orders: SaveOrder[] = [];
  const next = begin(react(state, event, orders), orders);
  return { state: next, orders };
}

function react(state: SaveState, event: SaveEvent, orders: SaveOrder[]): SaveState {
  const { snapshot, commit, waiting } = state;
  switch (event.kind) {
    case "request":
      if (!Number.isSafeInteger(event.step) || event.step < 0)
        throw new TriremeError("CHECKPOINT", `step ${event.step} is not a non-negative integer`);
      if (waiting !== undefined) throw unexpected(event.kind, state);
      return { ...state, waiting: event.step };
    case "snapshot-done":
      if (snapshot === undefined) throw unexpected(event.kind, state);
      orders.push({ kind: "resume", step: snapshot.step });
      return { ...state, waiting: undefined, snapshot: undefined, held: [...state.held, snapshot] };
    case "snapshot-failed":
      if (snapshot === undefined) throw unexpected(event.kind, state);
      orders.push(
        { kind: "failed", step: snapshot.step, reason: event.reason, durable: false },
        { kind: "resume", step: snapshot.step },
      );
      return { ...state, waiting: undefined, snapshot: undefined };
    case "listed":
    case "operation-done":
    case "operation-failed":
    case "written":
    case "write-failed":
      if (commit === undefined) throw unexpected(event.kind, state);
      return { ...state, commit: advanceCommit(state, commit, event, orders) };
  }
}

type CommitEvent = Exclude<SaveEvent, { readonly kind: `${"request" | "snapshot"}${string}` }>;

function advanceCommit(
  state: SaveState,
  commit: Commit,
  event: CommitEvent,
  orders: SaveOrder[],
): Commit | undefined {
  const { step, buffer } = commit;
  const held = { step, buffer };
  const failed = (reason: string, durable = false): undefined => {
    orders.push({ kind: "failed", step, reason, durable });
  };
  switch (commit.phase) {
    case "list": {
      if (event.kind === "operation-failed") return failed(event.reason);
      if (event.kind !== "listed") break;
      const { names: existing, incomplete = [] } = event;
      const phases = commitPhases({ ...state.options, step, existing, incomplete });
      return prepareOrWrite(state, held, phases, 0, orders);
    }
    case "prepare":
      if (event.kind === "operation-failed")
        return clean(held, commit.phases, event.reason, orders);
      if (event.kind !== "operation-done") break;
      return prepareOrWrite(state, held, commit.phases, commit.next, orders);
    case "write": {
      if (event.kind !== "written" && event.kind !== "write-failed") break;
      // Each writer once; one there is not has no place in the list.
      if (!(event.writer in commit.reports) || commit.reports[event.writer] !== undefined) break;
      const report = event.kind === "written" ? event.files : event.reason;
      const reports = commit.reports.with(event.writer, report);
      // A writer that still writes could bring back what was cleared away: all report first.
      if (reports.includes(undefined)) return { ...commit, reports };
      return finishOrClean(held, commit.phases, reports, orders);
    }
    case "finish": {
      const { operations, durable, next } = commit;
      if (event.kind === "operation-failed") {
        if (next - 1 >= durable) return failed(event.reason, true);
        return clean(held, commit.phases, event.reason, orders);
      }
      if (event.kind !== "operation-done") break;
      const operation = operations[next];
      if (operation !== undefined) {
        orders.push({ kind: "operate", operation });
        return { ...commit, next: next + 1 };
      }
      orders.push({ kind: "saved", step, name: commit.phases.name });
      return undefined;
    }
    case "clean":
      // What cannot be cleared away now, the next commit clears.
      if (event.kind === "operation-done" || event.kind === "operation-failed")
        return failed(commit.reason);
  }
  throw unexpected(event.kind, state);
}

function prepareOrWrite(
  { options }: SaveState,
  held: Held,
  phases: CommitPhases,
  next: number,
  orders: SaveOrder[],
): Commit {
  const operation = phases.prepare[next];
  if (operation === undefined) return write(held, phases, options.writers, orders);
  orders.push({ kind: "operate", operation });
  return { ...held, phase: "prepare", phases, next: next + 1 };
}

function write(held: Held, phases: CommitPhases, writers: number, orders: SaveOrder[]): Commit {
  for (let writer = 0; writer < writers; writer++) {
    orders.push({ kind: "write", ...held, writer, directory: phases.temporary });
  }
  return {
    ...held,
    phase: "write",
    phases,
    reports: new Array<undefined>(writers).fill(undefined),
  };
}

function finishOrClean(
  held: Held,
  phases: CommitPhases,
  reports: readonly (readonly MarkedFile[] | string | undefined)[],
  orders: SaveOrder[],
): Commit {
  const failures = reports.flatMap((report, writer) =>
    typeof report === "string" ? [`writer ${writer}: ${report}`] : [],
  );
  if (failures.length > 0) return clean(held, phases, failures.join("; "), orders);
  const files = reports.flatMap((report) => (typeof report === "string" ? [] : (report ?? [])));
  // Complete by its marker, and nothing to restore from.
  if (files.length === 0) return clean(held, phases, "no writer wrote a file", orders);
  let finish: ReturnType<CommitPhases["finish"]>;
  try {
    finish = phases.finish(files);
  } catch (error) {
    // Two writers with one name, or a name that is none: the writers' mistake, not the machine's.
    return clean(held, phases, error instanceof Error ? error.message : String(error), orders);
  }
  orders.push({ kind: "operate", operation: finish.operations[0]! });
  return { ...held, phase: "finish", phases, ...finish, next: 1 };
}

function clean(held: Held, phases: CommitPhases, reason: string, orders: SaveOrder[]): Commit {
  orders.push({ kind: "operate", operation: { kind: "remove", path: phases.temporary } });
  return { ...held, phase: "clean", reason };
}

/** Starts what can start: the next commit, and the copy that training waits for once a buffer is free. */
function begin(state: SaveState, orders: SaveOrder[]): SaveState {
  let { commit, held, snapshot } = state;
  const [first, ...others] = held;
  if (commit === undefined && first !== undefined) {
    commit = { ...first, phase: "list" };
    held = others;
    orders.push({ kind: "list", path: state.options.directory });
  }
  if (state.waiting !== undefined && snapshot === undefined) {
    const used = new Set([...held, ...(commit === undefined ? [] : [commit])].map((h) => h.buffer));
    const free = Array.from({ length: state.options.buffers }, (_, i) => i).find(
      (buffer) => !used.has(buffer),
    );
    if (free !== undefined) {
      snapshot = { step: state.waiting, buffer: free };
      orders.push({ kind: "snapshot", ...snapshot });
    }
  }
  return { ...state, commit, held, snapshot };
}

function unexpected(kind: string, { waiting, commit }: SaveState): TriremeError {
  const doing = commit === undefined ? "none" : `that of step ${commit.step} in "${commit.phase}"`;
  const asked = waiting === undefined ? "none" : `step ${waiting}`;
  return new TriremeError(
    "CHECKPOINT",
    `"${kind}" is not due: save in flight ${doing}, request waiting ${asked}`,
  );
}
