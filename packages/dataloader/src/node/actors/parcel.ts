/**
 * Samples on their way from a source loader to a data constructor of the same host: in shared memory
 * between threads, in a file between processes (on a file system in memory no disk is touched). What
 * passes through the planner's thread is only where they lie. Words: count, then sample and length of
 * each, then the tokens.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where samples lie. */
export type Parcel =
  | { readonly kind: "shared"; readonly buffer: SharedArrayBuffer }
  | { readonly kind: "file"; readonly path: string };

/** Samples by their number in the step. */
export type ParcelItems = readonly (readonly [sample: number, tokens: Int32Array])[];

/** Packs samples into shared memory, or into a file in `directory`. */
export function packParcel(items: ParcelItems, directory: string | undefined): Parcel {
  const head = 1 + 2 * items.length;
  const size = items.reduce((sum, [, tokens]) => sum + tokens.length, head);
  const buffer =
    directory === undefined ? new SharedArrayBuffer(4 * size) : new ArrayBuffer(4 * size);
  const words = new Int32Array(buffer);
  words[0] = items.length;
  let at = head;
  items.forEach(([sample, tokens], i) => {
    words[1 + 2 * i] = sample;
    words[2 + 2 * i] = tokens.length;
    words.set(tokens, at);
    at += tokens.length;
  });
  if (buffer instanceof SharedArrayBuffer) return { kind: "shared", buffer };
  const path = join(directory!, `${randomUUID()}.parcel`);
  writeFileSync(`${path}.part`, words);
  // Whole or not there: a loader that dies while it writes leaves no parcel.
  renameSync(`${path}.part`, path);
  return { kind: "file", path };
}

/** The samples of a parcel. */
export function unpackParcel(parcel: Parcel): ParcelItems {
  let words: Int32Array;
  if (parcel.kind === "shared") words = new Int32Array(parcel.buffer);
  else {
    const bytes = readFileSync(parcel.path);
    words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  }
  const count = words[0]!;
  let at = 1 + 2 * count;
  return Array.from({ length: count }, (_, i) => {
    const length = words[2 + 2 * i]!;
    return [words[1 + 2 * i]!, words.subarray(at, (at += length))] as const;
  });
}

/** Gives its memory back. Shared memory goes when nobody holds it. */
export function dropParcel(parcel: Parcel): void {
  if (parcel.kind === "file") rmSync(parcel.path, { force: true });
}
