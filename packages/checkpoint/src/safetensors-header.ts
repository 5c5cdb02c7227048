/**
 * The header of a safetensors file, strictly: no key may come twice, every size must agree with shape
 * and element type, and the tensors must tile the data without a hole, an overlap or a byte left over.
 */
import { nearestName } from "@trireme/core";
import { dtypes, isDtype, tensorBytes } from "./dtype.ts";
import { type PlacedTensor, maximumHeaderBytes, metadataKey } from "./encode-safetensors.ts";
import { SafetensorsError } from "./safetensors-error.ts";
import { type Json, JsonNumber, JsonSyntaxError, parseStrictJson } from "./strict-json.ts";

/** What a header says. */
export interface SafetensorsHeader {
  /** In the order of their data. */
  readonly tensors: readonly PlacedTensor[];
  /** The texts under `__metadata__`; empty where the file has none. */
  readonly metadata: Readonly<Record<string, string>>;
}

interface Place {
  readonly name: string;
  readonly dtype: PlacedTensor["dtype"];
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

/** Bytes of the header, length included, by the first 8 bytes of a file of that size. */
export function headerBytes(first: Uint8Array, fileSize: number): number {
  if (fileSize < 8 || first.byteLength < 8) {
    throw new SafetensorsError(
      "HeaderTooSmall",
      `the file has ${fileSize} bytes; the length of the header alone takes 8`,
    );
  }
  const length = new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(maximumHeaderBytes)) {
    throw new SafetensorsError(
      "HeaderTooLarge",
      `the header is said to have ${length} bytes; the format allows ${maximumHeaderBytes}`,
    );
  }
  const dataStart = 8 + Number(length);
  if (dataStart > fileSize) {
    throw new SafetensorsError(
      "InvalidHeaderLength",
      `the header is said to have ${length} bytes, but only ${fileSize - 8} follow`,
    );
  }
  return dataStart;
}

/** Reads the header: the first `headerBytes` of a file of that size. */
export function readHeader(bytes: Uint8Array, fileSize: number): SafetensorsHeader {
  const header = parseHeader(headerText(bytes.subarray(8)));
  const dataStart = bytes.byteLength;
  let metadata: Readonly<Record<string, string>> = {};
  const places: Place[] = [];
  for (const [name, value] of header) {
    if (name === metadataKey) metadata = readMetadata(value);
    else places.push(readPlace(name, value));
  }
  places.sort((a, b) => a.start - b.start || a.end - b.end);
  const dataSize = fileSize - dataStart;
  let expected = 0;
  for (const { name, dtype, shape, start, end } of places) {
    if (start !== expected || end < start) {
      throw new SafetensorsError(
        "InvalidOffset",
        `tensor "${name}" lies at [${start}, ${end}); the one before it ends at ${expected}, and there may be no hole and no overlap`,
      );
    }
    const needed = tensorBytes(name, dtype, shape);
    if (end - start !== needed) {
      throw new SafetensorsError(
        "TensorInvalidInfo",
        `tensor "${name}" of ${dtype} [${shape.join(", ")}] needs ${needed} bytes; its offsets give it ${end - start}`,
      );
    }
    expected = end;
  }
  if (expected !== dataSize) {
    throw new SafetensorsError(
      "MetadataIncompleteBuffer",
      `the tensors end at ${expected}, but the file has ${dataSize} bytes of data; it is ${dataSize < expected ? "cut short" : "too long"}`,
    );
  }
  const tensors = places.map(({ name, dtype, shape, start, end }) => ({
    name,
    dtype,
    shape,
    offset: dataStart + start,
    size: end - start,
  }));
  return { tensors, metadata };
}

function headerText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new SafetensorsError("InvalidHeader", "the header is not UTF-8", { cause });
  }
}

function parseHeader(text: string): ReadonlyMap<string, Json> {
  if (!text.startsWith("{")) {
    throw new SafetensorsError(
      "InvalidHeaderStart",
      `the header starts with ${JSON.stringify(text.slice(0, 1))}; it must start with "{"`,
    );
  }
  try {
    const header = parseStrictJson(text);
    if (header instanceof Map) return header;
  } catch (cause) {
    if (!(cause instanceof JsonSyntaxError)) throw cause;
    throw new SafetensorsError(
      "InvalidHeaderDeserialization",
      `the header is no strict JSON: ${cause.message}`,
      { cause },
    );
  }
  throw malformed("the header is no JSON object");
}

function readMetadata(value: Json): Readonly<Record<string, string>> {
  // The reference reader takes null for "none".
  if (value === null) return {};
  if (!(value instanceof Map)) throw malformed(`${metadataKey} is no object`);
  for (const [key, text] of value) {
    if (typeof text !== "string")
      throw malformed(`${metadataKey} has ${JSON.stringify(key)} that is no string`);
  }
  // fromEntries defines own properties, also one named "__proto__".
  return Object.fromEntries(value);
}

const fields = ["dtype", "shape", "data_offsets"];

function readPlace(name: string, value: Json): Place {
  const quoted = JSON.stringify(name);
  if (!(value instanceof Map)) throw malformed(`tensor ${quoted} is no object`);
  const missing = fields.filter((field) => !value.has(field));
  if (missing.length > 0) throw malformed(`tensor ${quoted} has no ${missing.join(", ")}`);
  const dtype: unknown = value.get("dtype");
  if (typeof dtype !== "string" || !isDtype(dtype)) {
    const near = typeof dtype === "string" ? nearestName(dtype, dtypes) : undefined;
    throw malformed(
      `tensor ${quoted} has dtype ${JSON.stringify(dtype)}, which is not known` +
        (near === undefined ? "" : `; did you mean ${near}?`),
    );
  }
  const shape = counts(`the shape of tensor ${quoted}`, value.get("shape"));
  const offsets = counts(`data_offsets of tensor ${quoted}`, value.get("data_offsets"));
  const [start, end] = offsets;
  if (start === undefined || end === undefined || offsets.length !== 2) {
    throw malformed(
      `data_offsets of tensor ${quoted} has ${offsets.length} numbers; it must have 2`,
    );
  }
  return { name, dtype, shape, start, end };
}

function counts(what: string, value: Json | undefined): number[] {
  if (!Array.isArray(value)) throw malformed(`${what} is no array`);
  return value.map((item: Json) => {
    const count = item instanceof JsonNumber ? item.count : undefined;
    if (count === undefined)
      throw malformed(`${what} has an entry that is no non-negative integer`);
    if (count > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new SafetensorsError(
        "ValidationOverflow",
        `${what} has ${count}, which is above 2^53-1`,
      );
    }
    return Number(count);
  });
}

function malformed(reason: string): SafetensorsError {
  return new SafetensorsError("InvalidHeaderDeserialization", reason);
}
