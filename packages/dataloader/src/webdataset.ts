/**
 * WebDataset: a tar archive whose files that follow one another under the same name up to the first dot
 * of its last part are one sample; what comes after the dot says which part of it.
 * Source: the WebDataset file format, https://github.com/webdataset/webdataset.
 */
import { TriremeError } from "@trireme/core";
import type { ByteReader } from "./byte-reader.ts";
import { FormatError } from "./format-error.ts";
import { encodeTar } from "./tar-writer.ts";
import { type TarEntry, readTar } from "./tar.ts";

/** A sample, its parts not yet read. */
export interface WebSample {
  /** Path up to the first dot of the file's name: "train/0001" of "train/0001.seg.png". */
  readonly key: string;
  /** The files by what comes after that dot: "txt", "seg.png"; lower case. */
  readonly parts: ReadonlyMap<string, TarEntry>;
}

/** The samples of a shard, in order. */
export function* readWebDataset(reader: ByteReader): Generator<WebSample> {
  const seen = new Set<string>();
  let key: string | undefined;
  let parts = new Map<string, TarEntry>();
  for (const entry of readTar(reader)) {
    const split = splitName(entry.name);
    // Files without a name before the dot, and without a dot, belong to no sample (".DS_Store", "README").
    if (split === undefined) continue;
    if (split.key !== key) {
      if (key !== undefined) yield { key, parts };
      if (seen.has(split.key)) {
        throw new FormatError(
          reader.name,
          entry.offset - 512,
          `sample ${split.key} comes twice, or its files are apart: sort the archive by name`,
        );
      }
      seen.add(split.key);
      key = split.key;
      parts = new Map();
    }
    if (parts.has(split.part)) {
      throw new FormatError(
        reader.name,
        entry.offset - 512,
        `sample ${split.key} has two files .${split.part}`,
      );
    }
    parts.set(split.part, entry);
  }
  if (key !== undefined) yield { key, parts };
}

/** A sample to be written: bytes by part. */
export interface WebSampleData {
  readonly key: string;
  readonly parts: Readonly<Record<string, Uint8Array>>;
}

/** The bytes of a shard of samples. */
export function encodeWebDataset(samples: Iterable<WebSampleData>): Uint8Array<ArrayBuffer> {
  const files: { name: string; data: Uint8Array }[] = [];
  const seen = new Set<string>();
  for (const { key, parts } of samples) {
    const base = key.slice(key.lastIndexOf("/") + 1);
    if (base === "" || base.includes(".")) {
      throw new TriremeError(
        "FORMAT",
        `sample key ${JSON.stringify(key)}: its last part must be non-empty and without a dot`,
      );
    }
    if (seen.has(key))
      throw new TriremeError("FORMAT", `two samples have the key ${JSON.stringify(key)}`);
    seen.add(key);
    if (Object.keys(parts).length === 0) {
      throw new TriremeError(
        "FORMAT",
        `sample ${JSON.stringify(key)} has no part; an archive holds files, so it would be lost`,
      );
    }
    for (const [part, data] of Object.entries(parts)) {
      if (!/^[^/.][^/]*$/.test(part) || part !== part.toLowerCase()) {
        throw new TriremeError(
          "FORMAT",
          `part ${JSON.stringify(part)} of sample ${key}: lower case, no slash, no leading dot`,
        );
      }
      files.push({ name: `${key}.${part}`, data });
    }
  }
  return encodeTar(files);
}

function splitName(name: string): { key: string; part: string } | undefined {
  const base = name.lastIndexOf("/") + 1;
  const dot = name.indexOf(".", base);
  if (dot <= base) return undefined;
  const part = name.slice(dot + 1).toLowerCase();
  return part === "" ? undefined : { key: name.slice(0, dot), part };
}
