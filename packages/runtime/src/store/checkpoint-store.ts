/** Checkpoints in a directory of any storage, by the commit protocol and the save machine of `@trireme/checkpoint`. */
import {
  type CheckpointEntry,
  type CheckpointName,
  type Marker,
  completeCheckpoints,
  crc32,
  markerName,
  parseCheckpointName,
  parseMarker,
  startSaving,
} from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import type { CheckpointStore, Snapshot, SnapshotFile } from "../runtime.ts";
import { type ShardWriter, carryOutSave } from "./carry-out-save.ts";
import { type OpenCheckpoint, openCheckpoint } from "./open-checkpoint.ts";
import { type Checksum, type CheckpointStorage, damaged, isDamaged } from "./storage.ts";
import { writeFiles } from "./write-files.ts";

/** What a store is made of. */
export interface CheckpointStoreOptions {
  readonly storage: CheckpointStorage;
  /** The directory of all checkpoints; made by the first save. */
  readonly directory: string;
  /** Newest ones kept; default 2. */
  readonly keep?: number;
  /** Default a portable one; `zlib.crc32` is faster. */
  readonly checksum?: Checksum;
}

/** A store whose checkpoints may have several writers and be read in part. */
export interface ShardedStore extends CheckpointStore {
  /** Steps of the complete saves, newest first. */
  steps(): Promise<readonly number[]>;
  /**
   * Saves what several writers write, all at once, and resolves to the checkpoint's name. It is complete
   * once all have written; where one fails, nothing of it is left.
   */
  saveShards(step: number, writers: readonly ShardWriter[]): Promise<string>;
  /** Opens a complete save, the newest by default, to be read in part. */
  open(step?: number): Promise<OpenCheckpoint>;
  /** Removes the saves of later steps, newest first, so that a run goes on from `step` for good. */
  discardAfter(step: number): Promise<void>;
}

/**
 * A store. A process that dies at any point leaves the newest complete checkpoint readable; what it left
 * half-written is ignored and later removed. Saves asked for at once are carried out one after the
 * other. A store whose last save vanished (a disk unmounted, a directory removed) refuses to go on.
 * @throws TriremeError "CHECKPOINT" for fewer than one save to keep, or the directory "".
 */
export function checkpointStore(options: CheckpointStoreOptions): ShardedStore {
  const { storage, directory, keep = 2, checksum = crc32 } = options;
  // Refused now, not when the first save is due.
  void startSaving({ directory, keep });
  /** The last save of this store. */
  let last: string | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(act: () => Promise<T>): Promise<T> => {
    const mine = turn.then(act);
    turn = mine.catch(() => undefined);
    return mine;
  };

  const list = async (): Promise<{ names: readonly string[]; incomplete: readonly string[] }> => {
    const names = await storage.list(directory);
    if (last !== undefined && !names.includes(last)) {
      throw new TriremeError(
        "CHECKPOINT",
        `${directory} no longer has ${last}, which was saved there; was it removed, or its disk unmounted?`,
      );
    }
    const entries = await entriesOf(storage, directory, names);
    const complete = new Set(completeCheckpoints(entries).map(({ name }) => name));
    // What cannot be read now may be whole, and is not cleared away.
    const incomplete = entries.filter(({ name, unreadable }) => !complete.has(name) && !unreadable);
    return { names, incomplete: incomplete.map(({ name }) => name) };
  };
  const complete = async (): Promise<readonly (CheckpointName & { marker: Marker })[]> => {
    const entries = await entriesOf(storage, directory, await storage.list(directory));
    const markers = new Map(entries.map(({ name, marker }) => [name, marker]));
    return completeCheckpoints(entries).flatMap((found) => {
      const marker = parseMarker(markers.get(found.name) ?? "");
      return marker === undefined ? [] : [{ ...found, marker }];
    });
  };
  const opened = async (step?: number): Promise<readonly OpenCheckpoint[]> => {
    const all = await complete();
    const wanted = all.filter((found) => step === undefined || found.step === step);
    if (wanted.length === 0) {
      const what = step === undefined ? "" : ` of step ${step}`;
      const has = all.length === 0 ? "" : `; it has ${all.map((found) => found.step).join(", ")}`;
      throw new TriremeError("CHECKPOINT", `${directory} has no complete checkpoint${what}${has}`);
    }
    return wanted.map(({ name, marker }) =>
      openCheckpoint({ storage, path: `${directory}/${name}`, name, marker, checksum }),
    );
  };
  const saveShards = (step: number, writers: readonly ShardWriter[]): Promise<string> =>
    inTurn(async () => {
      last = await carryOutSave({ storage, directory, step, keep, writers, list });
      return last;
    });

  return {
    saveShards,
    async save({ step, files }) {
      if (files.length === 0) {
        const message = `the checkpoint of step ${step} has no files; give at least one`;
        throw new TriremeError("CHECKPOINT", message);
      }
      await saveShards(step, [(into) => writeFiles(storage, into, files, checksum)]);
    },
    async steps() {
      return [...new Set((await complete()).map(({ step }) => step))];
    },
    async newest() {
      return (await complete())[0]?.step;
    },
    async open(step) {
      return (await opened(step))[0]!;
    },
    async load(step) {
      const reasons: string[] = [];
      // A step saved twice has its older attempt to fall back to.
      for (const checkpoint of await opened(step)) {
        try {
          return await readAll(checkpoint);
        } catch (error) {
          if (!isDamaged(error)) throw error;
          reasons.push(error.message);
        }
      }
      throw damaged(`the checkpoint of step ${step} is damaged: ${reasons.join("; ")}`);
    },
    discardAfter: (step) =>
      inTurn(async () => {
        const later = (await storage.list(directory))
          .flatMap((name) => parseCheckpointName(name) ?? [])
          .filter((found) => found.step > step)
          .sort((a, b) => b.step - a.step || b.attempt - a.attempt);
        for (const { name } of later) {
          await storage.execute({ kind: "remove", path: `${directory}/${name}` });
          if (name === last) last = undefined;
        }
        if (storage.renames && later.length > 0)
          await storage.execute({ kind: "sync-directory", path: directory });
      }),
  };
}

async function readAll(checkpoint: OpenCheckpoint): Promise<Snapshot> {
  const files: SnapshotFile[] = [];
  const names = checkpoint.files.map(({ name }) => name).sort();
  for (const name of names) files.push({ name, bytes: await checkpoint.read(name) });
  return { step: checkpoint.step, files };
}

/** A directory of a checkpoint's name, and whether its marker is there but cannot be read back. */
interface FoundEntry extends CheckpointEntry {
  readonly unreadable: boolean;
}

function entriesOf(
  storage: CheckpointStorage,
  directory: string,
  names: readonly string[],
): Promise<readonly FoundEntry[]> {
  const checkpoints = names.filter((name) => parseCheckpointName(name) !== undefined);
  return Promise.all(
    checkpoints.map(async (name) => {
      const path = `${directory}/${name}`;
      const files = await storage.files(path);
      const found = files.find((file) => file.name === markerName);
      const none = { name, files, marker: undefined, unreadable: false };
      if (found === undefined) return none;
      const bytes = new Uint8Array(found.size);
      try {
        await storage.read(`${path}/${markerName}`, 0, bytes);
      } catch (error) {
        if (isDamaged(error)) return { ...none, unreadable: true };
        throw error;
      }
      return { ...none, marker: new TextDecoder().decode(bytes) };
    }),
  );
}
