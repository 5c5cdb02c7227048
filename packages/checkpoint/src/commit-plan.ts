/**
 * How a checkpoint reaches the disk so that a crash at any point leaves a complete one behind: written
 * under a temporary name in the target directory (a rename does not cross file systems), every file
 * and then the directory forced to disk, renamed, the parent forced to disk, the `latest` pointer
 * replaced the same way, and only then anything older removed. Pillai et al., All file systems are not
 * created equal, OSDI 2014, is the catalogue of what goes wrong when one of these is left out.
 *
 * This decides; an adapter with `fsync` carries it out, one operation after the other.
 */
import { TriremeError } from "@trireme/core";
import {
  checkpointName,
  isTemporaryName,
  latestName,
  markerName,
  newestFirst,
  parseCheckpointName,
  temporaryName,
} from "./checkpoint-name.ts";
import { checkFileName } from "./file-name.ts";
import { type MarkedFile, encodeMarker } from "./marker.ts";

/** A file of a checkpoint. */
export interface CheckpointFile {
  /** A plain name, without a directory. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** One operation on a file system; each must have returned before the next starts. */
export type FileOperation =
  /**
   * Makes a directory and those above it, no error where it exists, and syncs the parent of each one
   * that it made: else the first checkpoint of a run could vanish with the directory it is in.
   */
  | { readonly kind: "make-directory"; readonly path: string }
  /**
   * Without `offset`, or at 0, creates or empties a file; then writes all of the bytes there. A file
   * that does not fit in memory is a row of writes, each where the one before ended.
   */
  | {
      readonly kind: "write";
      readonly path: string;
      readonly bytes: Uint8Array;
      readonly offset?: number;
    }
  /** Forces a file's content to disk (fsync). */
  | { readonly kind: "sync"; readonly path: string }
  /** Forces a directory's entries to disk (fsync of the directory). */
  | { readonly kind: "sync-directory"; readonly path: string }
  /** Renames within one directory; replaces a file, never a directory. */
  | { readonly kind: "rename"; readonly from: string; readonly to: string }
  /** Removes a file, or a directory with all in it; no error where there is none. */
  | { readonly kind: "remove"; readonly path: string };

/** What to commit, and what is there already. */
export interface CommitOptions {
  /** The directory of all checkpoints; "/" separates the parts of paths. */
  readonly directory: string;
  readonly step: number;
  readonly files: readonly CheckpointFile[];
  /** Checkpoints to keep, this one among them; at least 1. */
  readonly keep: number;
  /** Names of all that is in `directory` now; [] where it does not exist. */
  readonly existing: readonly string[];
  /**
   * Those of them that are no whole checkpoints, whatever their names say: they are not counted among
   * those to keep, and go when this one is complete. Default none.
   */
  readonly incomplete?: readonly string[];
  /**
   * False for an object store, which has no rename and in which a file appears whole or not at all
   * once it is synced: files go to their last names at once, and the marker, written last, commits.
   * Default true.
   */
  readonly renames?: boolean;
  /**
   * CRC-32 of a file's bytes, for the marker: `crc32`, or a native one; default none, since it reads
   * every byte before the first is written.
   */
  readonly checksum?: (bytes: Uint8Array) => number;
}

/** The operations that commit a checkpoint, in order. */
export function commitPlan(options: CommitOptions): readonly FileOperation[] {
  const { step, files, checksum } = options;
  if (files.length === 0) {
    throw new TriremeError(
      "CHECKPOINT",
      `the checkpoint of step ${step} has no files; give at least one`,
    );
  }
  const { prepare, temporary, finish } = commitPhases(options);
  const operations = [...prepare];
  for (const { name, bytes } of files)
    operations.push(...writeSynced(`${temporary}/${name}`, bytes));
  const marked = files.map(({ name, bytes }) => {
    const size = bytes.byteLength;
    return checksum === undefined ? { name, size } : { name, size, crc32: checksum(bytes) };
  });
  return [...operations, ...finish(marked).operations];
}

/** A commit in the parts between which several writers write their files. */
export interface CommitPhases {
  /** The checkpoint's name in its directory. */
  readonly name: string;
  /**
   * The directory in which every writer writes and syncs its files once `prepare` is done; the last
   * one where there are no renames.
   */
  readonly temporary: string;
  readonly prepare: readonly FileOperation[];
  /**
   * What follows once every file is written and synced, given all of them. Once the first `durable`
   * of the operations are done the checkpoint is complete, whatever happens to the others.
   */
  readonly finish: (files: readonly MarkedFile[]) => {
    readonly operations: readonly FileOperation[];
    readonly durable: number;
  };
}

/** The parts of a commit; `commitPlan` is all of them with one writer's files in between. */
export function commitPhases(options: Omit<CommitOptions, "files" | "checksum">): CommitPhases {
  const { directory, step, keep, existing, incomplete = [], renames = true } = options;
  check(options);
  const checkpoints = existing.flatMap((entry) => parseCheckpointName(entry) ?? []);
  const attempts = checkpoints.filter((other) => other.step === step).map(({ attempt }) => attempt);
  const name = checkpointName(step, Math.max(-1, ...attempts) + 1);

  const at = (entry: string): string => `${directory}/${entry}`;
  const temporary = at(renames ? temporaryName(name) : name);

  // A temporary that a crash left under this very name must not lend its files; without renames the
  // name is one that nothing has yet.
  const prepare: readonly FileOperation[] = [
    { kind: "make-directory", path: directory },
    { kind: "remove", path: temporary },
    { kind: "make-directory", path: temporary },
  ];
  // The new one stays even where later steps exist, as they do after a return to an earlier one.
  const broken = new Set(incomplete);
  const whole = checkpoints.filter((checkpoint) => !broken.has(checkpoint.name));
  const old = whole.sort(newestFirst).slice(keep - 1);
  const stale = existing.filter((entry) => isTemporaryName(entry) && at(entry) !== temporary);
  const doomed = [...old.map((checkpoint) => checkpoint.name), ...incomplete, ...stale];

  const finish: CommitPhases["finish"] = (files) => {
    checkFiles(files);
    const marked = writeSynced(`${temporary}/${markerName}`, encodeMarker(step, files));
    const sync: FileOperation = { kind: "sync-directory", path: directory };
    const complete: readonly FileOperation[] = renames
      ? [
          ...marked,
          { kind: "sync-directory", path: temporary },
          { kind: "rename", from: temporary, to: at(name) },
          sync,
        ]
      : marked;
    const removals = doomed.map((entry): FileOperation => ({ kind: "remove", path: at(entry) }));
    const last = renames && doomed.length > 0 ? [sync] : [];
    const operations = [...complete, ...point(directory, name, renames), ...removals, ...last];
    return { operations, durable: complete.length };
  };
  return { name, temporary, prepare: renames ? prepare : [], finish };
}

/** Makes `latest` hold the name: through a temporary file, so that it never holds half of one. */
function point(directory: string, name: string, renames: boolean): readonly FileOperation[] {
  const pointer = `${directory}/${latestName}`;
  const bytes = new TextEncoder().encode(`${name}\n`);
  if (!renames) return writeSynced(pointer, bytes);
  const temporary = `${directory}/${temporaryName(latestName)}`;
  return [
    ...writeSynced(temporary, bytes),
    { kind: "rename", from: temporary, to: pointer },
    { kind: "sync-directory", path: directory },
  ];
}

function writeSynced(path: string, bytes: Uint8Array): readonly FileOperation[] {
  return [
    { kind: "write", path, bytes },
    { kind: "sync", path },
  ];
}

function check({
  directory,
  step,
  keep,
}: Pick<CommitOptions, "directory" | "step" | "keep">): void {
  if (directory === "")
    throw new TriremeError("CHECKPOINT", 'the directory is ""; use "." for the current one');
  if (!Number.isSafeInteger(step) || step < 0) {
    throw new TriremeError("CHECKPOINT", `step ${step} is not a non-negative integer`);
  }
  if (!Number.isSafeInteger(keep) || keep < 1) {
    throw new TriremeError(
      "CHECKPOINT",
      `keep ${keep}: at least the new checkpoint is kept; use 1 or more`,
    );
  }
}

function checkFiles(files: readonly MarkedFile[]): void {
  const names = new Set<string>([markerName]);
  for (const { name } of files) {
    checkFileName(name);
    if (names.has(name)) {
      throw new TriremeError(
        "CHECKPOINT",
        name === markerName
          ? `${markerName} is the marker's name; use another`
          : `two files are named ${name}`,
      );
    }
    names.add(name);
  }
}
