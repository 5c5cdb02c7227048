/**
 * The index of a sharded checkpoint: for each tensor of the whole model the files that hold its
 * regions. As JSON it is read strictly: regions that overlap or leave a hole are refused before any
 * of them is read.
 */
import { TriremeError } from "@trireme/core";
import { coverage } from "./coverage.ts";
import { type Dtype, isDtype, tensorBytes } from "./dtype.ts";
import { checkFileName } from "./file-name.ts";
import type { Region } from "./region.ts";
import { type Json, JsonNumber, parseStrictJson } from "./strict-json.ts";

/** The name of the index among a checkpoint's files. */
export const indexFileName = "index.json";

/** A region in a file. */
export interface StoredPiece {
  /** A safetensors file of the checkpoint. */
  readonly file: string;
  /** Its name in that file. */
  readonly key: string;
  readonly region: Region;
}

/** A tensor as a checkpoint has it. */
export interface StoredTensor {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  /** Regions that cover it exactly once; none where it is empty. */
  readonly pieces: readonly StoredPiece[];
}

/** The index as UTF-8 JSON; equal input gives equal bytes. */
export function encodeCheckpointIndex(tensors: readonly StoredTensor[]): Uint8Array<ArrayBuffer> {
  const entries = tensors.map(({ name, dtype, shape, pieces }) => {
    const listed = pieces.map(({ file, key, region }) => ({
      file,
      ...(key === name ? {} : { key }),
      start: region.start,
      shape: region.shape,
    }));
    return JSON.stringify({ name, dtype, shape, pieces: listed });
  });
  return new TextEncoder().encode(`{"version":1,"tensors":[\n${entries.join(",\n")}\n]}\n`);
}

/** Reads an index. Throws `CHECKPOINT` naming the tensor and what is wrong with it. */
export function parseCheckpointIndex(bytes: Uint8Array): readonly StoredTensor[] {
  const root = parse(bytes);
  if (!(root instanceof Map)) throw malformed("it is no JSON object");
  const version: unknown = root.get("version");
  if (!(version instanceof JsonNumber) || version.text !== "1")
    throw malformed("it is not of version 1");
  const list = root.get("tensors");
  if (!Array.isArray(list)) throw malformed("it has no list of tensors");
  const names = new Set<string>();
  return list.map((value: Json) => {
    const tensor = readTensor(value);
    if (names.has(tensor.name)) throw malformed(`tensor "${tensor.name}" comes twice`);
    names.add(tensor.name);
    tensorBytes(tensor.name, tensor.dtype, tensor.shape);
    const covered = coverage(
      tensor.shape,
      tensor.pieces.map(({ region }) => region),
    );
    if (!covered.ok) throw malformed(`tensor "${tensor.name}": ${covered.reason}`);
    return tensor;
  });
}

function parse(bytes: Uint8Array): Json {
  try {
    return parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("CHECKPOINT", `the checkpoint's index is no strict JSON: ${why}`, {
      cause,
    });
  }
}

function readTensor(value: Json): StoredTensor {
  if (!(value instanceof Map)) throw malformed("it has a tensor that is no object");
  const name = text("a tensor", "name", value);
  const what = `tensor "${name}"`;
  const dtype = text(what, "dtype", value);
  if (!isDtype(dtype)) throw malformed(`${what} has unknown dtype ${JSON.stringify(dtype)}`);
  const pieces: Json | undefined = value.get("pieces");
  if (!Array.isArray(pieces)) throw malformed(`${what} has no list of pieces`);
  return {
    name,
    dtype,
    shape: counts(what, "shape", value),
    pieces: pieces.map((piece: Json) => {
      if (!(piece instanceof Map)) throw malformed(`${what} has a piece that is no object`);
      const file = text(what, "file", piece);
      checkFileName(file);
      return {
        file,
        key: piece.has("key") ? text(what, "key", piece) : name,
        region: { start: counts(what, "start", piece), shape: counts(what, "shape", piece) },
      };
    }),
  };
}

function text(what: string, field: string, object: ReadonlyMap<string, Json>): string {
  const value = object.get(field);
  if (typeof value !== "string") throw malformed(`${what} has no text "${field}"`);
  return value;
}

function counts(what: string, field: string, object: ReadonlyMap<string, Json>): readonly number[] {
  const value = object.get(field);
  if (!Array.isArray(value)) throw malformed(`${what} has no list "${field}"`);
  return value.map((item: Json) => {
    const count = item instanceof JsonNumber ? item.count : undefined;
    if (count === undefined || count > BigInt(Number.MAX_SAFE_INTEGER))
      throw malformed(`${what} has a "${field}" that is no integer in 0..2^53-1`);
    return Number(count);
  });
}

function malformed(reason: string): TriremeError {
  return new TriremeError("CHECKPOINT", `the checkpoint's index is refused: ${reason}`);
}
