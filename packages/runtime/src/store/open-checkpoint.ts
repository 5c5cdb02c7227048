/** A complete checkpoint, read in part or whole, every byte that is read whole compared with its checksum. */
import {
  type ByteSource,
  type MarkedFile,
  type Marker,
  type StoredTensor,
  indexFileName,
  parseCheckpointIndex,
} from "@trireme/checkpoint";
import { TriremeError, nearestName } from "@trireme/core";
import { type Checksum, type CheckpointStorage, damaged } from "./storage.ts";
import { chunkBytes } from "./write-files.ts";

/** A checkpoint to read from. */
export interface OpenCheckpoint {
  readonly step: number;
  /** Its directory's name. */
  readonly name: string;
  /** Its files, as its marker lists them. */
  readonly files: readonly MarkedFile[];
  /** A file, to be read at any place; nothing is compared with its checksum. */
  source(file: string): ByteSource;
  /** A whole file. @throws TriremeError "DAMAGED" where a byte of it is not what was written. */
  read(file: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Reads all files once, a chunk at a time. @throws TriremeError "DAMAGED" as `read` does. */
  verify(): Promise<void>;
  /** Where each tensor's regions are; undefined for a checkpoint without an index. */
  index(): Promise<readonly StoredTensor[] | undefined>;
}

/** Where a checkpoint is. */
export interface CheckpointPlace {
  readonly storage: CheckpointStorage;
  /** The directory of the checkpoint itself. */
  readonly path: string;
  readonly name: string;
  readonly marker: Marker;
  readonly checksum: Checksum;
}

/** Opens a checkpoint by its marker; reads nothing yet. */
export function openCheckpoint(place: CheckpointPlace): OpenCheckpoint {
  const { storage, path, name, marker } = place;
  const { step, files } = marker;
  const byName = new Map(files.map((file) => [file.name, file]));
  const find = (file: string): MarkedFile => {
    const found = byName.get(file);
    if (found !== undefined) return found;
    const near = nearestName(file, byName.keys());
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new TriremeError("CHECKPOINT", `${path} has no file ${file}${hint}`);
  };
  const read = async (file: string): Promise<Uint8Array<ArrayBuffer>> => {
    const found = find(file);
    const bytes = allocate(`${path}/${file}`, found.size);
    await compare(place, found, (at, length) => bytes.subarray(at, at + length));
    return bytes;
  };
  return {
    step,
    name,
    files,
    read,
    source(file) {
      const { size } = find(file);
      return {
        size,
        async read(offset, length) {
          const bytes = new Uint8Array(length);
          await storage.read(`${path}/${file}`, offset, bytes);
          return bytes;
        },
      };
    },
    async verify() {
      const chunk = new Uint8Array(chunkBytes);
      for (const file of files)
        await compare(place, file, (_, length) => chunk.subarray(0, length));
    },
    async index() {
      if (!byName.has(indexFileName)) return undefined;
      return parseCheckpointIndex(await read(indexFileName));
    },
  };
}

/** Reads a file chunk by chunk into what `target` gives, and compares its checksum. */
async function compare(
  { storage, path, checksum }: CheckpointPlace,
  { name, size, crc32 }: MarkedFile,
  target: (offset: number, length: number) => Uint8Array,
): Promise<void> {
  let found = checksum(new Uint8Array(0));
  for (let at = 0; at < size; at += chunkBytes) {
    const chunk = target(at, Math.min(chunkBytes, size - at));
    await storage.read(`${path}/${name}`, at, chunk);
    if (crc32 !== undefined) found = checksum(chunk, found);
  }
  if (crc32 === undefined || found === crc32) return;
  const [is, was] = [found, crc32].map((crc) => crc.toString(16).padStart(8, "0"));
  throw damaged(`${path}/${name} has CRC-32 ${is}; ${was} was written`);
}

function allocate(path: string, size: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(size);
  } catch (cause) {
    throw new TriremeError(
      "CHECKPOINT",
      `${path} has ${size} bytes, more than one buffer holds here; open the checkpoint and read its tensors in part`,
      { cause },
    );
  }
}
