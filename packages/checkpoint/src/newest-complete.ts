/** Which checkpoint to resume from: the newest that has all that its marker lists. */
import { type CheckpointName, newestFirst, parseCheckpointName } from "./checkpoint-name.ts";
import { type MarkedFile, parseMarker } from "./marker.ts";

/** An entry of the directory of checkpoints, as an adapter found it. */
export interface CheckpointEntry {
  /** Its name in the directory. */
  readonly name: string;
  /**
   * The files in it with their sizes in bytes; [] for what is no directory. A checksum that is given
   * is compared too; `verifyFiles` does it for files that were read.
   */
  readonly files: readonly MarkedFile[];
  /** The text of its `COMPLETE` file; undefined where it has none. */
  readonly marker: string | undefined;
}

/** The complete checkpoints among the entries, newest first (by step, then by attempt). */
export function completeCheckpoints(
  entries: readonly CheckpointEntry[],
): readonly CheckpointName[] {
  const complete = entries.flatMap((entry) => {
    const name = parseCheckpointName(entry.name);
    return name !== undefined && isComplete(entry, name.step) ? [name] : [];
  });
  return complete.sort(newestFirst);
}

/**
 * The step of the newest complete checkpoint; undefined where there is none. One that lacks its
 * marker, or a file of it, or a byte of a file, is passed over. The name of its directory is that of
 * `completeCheckpoints(entries)[0]`.
 */
export function newestComplete(entries: readonly CheckpointEntry[]): number | undefined {
  return completeCheckpoints(entries)[0]?.step;
}

function isComplete({ files, marker }: CheckpointEntry, step: number): boolean {
  const said = marker === undefined ? undefined : parseMarker(marker);
  if (said === undefined || said.step !== step) return false;
  const found = new Map(files.map((file) => [file.name, file]));
  return said.files.every(({ name, size, crc32 }) => {
    const file = found.get(name);
    const differs = crc32 !== undefined && file?.crc32 !== undefined && file.crc32 !== crc32;
    return file?.size === size && !differs;
  });
}
