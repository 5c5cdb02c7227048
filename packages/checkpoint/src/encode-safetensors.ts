/**
 * Tensors to the bytes of a safetensors file: a 64-bit little-endian header length, a JSON header
 * padded with spaces to 8 bytes, then the data without gaps. The order is the reference writer's, by
 * width of the element type descending and then by name, so equal tensors give equal bytes, and each
 * tensor is aligned to its own width in the file.
 */
import { dtypes, isDtype, tensorBytes } from "./dtype.ts";
import { SafetensorsError } from "./safetensors-error.ts";
import type { TensorEntry } from "./tensor-entry.ts";

/** The longest header the format allows, in bytes. */
export const maximumHeaderBytes = 100_000_000;

/** The key of the header that holds texts instead of a tensor. */
export const metadataKey = "__metadata__";

/** A tensor without its data. */
export type TensorInfo = Omit<TensorEntry, "data">;

/** A tensor's place in a file. */
export interface PlacedTensor extends TensorInfo {
  /** Of its first byte, from the start of the file. */
  readonly offset: number;
  /** In bytes. */
  readonly size: number;
}

/** A file that is all laid out, but for its data. */
export interface SafetensorsLayout {
  /** The first bytes: length and header. */
  readonly header: Uint8Array<ArrayBuffer>;
  /** In the order in which their data must follow, without gaps. */
  readonly tensors: readonly PlacedTensor[];
  /** Bytes of the whole file. */
  readonly size: number;
}

/** Lays out a file by what its tensors are, whatever their size: no data is needed yet. */
export function layoutSafetensors(
  tensors: readonly TensorInfo[],
  metadata?: Readonly<Record<string, string>>,
): SafetensorsLayout {
  const order = [...tensors].sort(
    (a, b) =>
      dtypes.indexOf(b.dtype) - dtypes.indexOf(a.dtype) || compareCodePoints(a.name, b.name),
  );
  const fields: string[] = [];
  if (metadata !== undefined) fields.push(`${quote(metadataKey)}:${metadataJson(metadata)}`);
  const names = new Set<string>([metadataKey]);
  const places: PlacedTensor[] = [];
  let offset = 0;
  for (const { name, dtype, shape } of order) {
    if (!isDtype(dtype)) {
      throw new SafetensorsError(
        "InvalidTensorView",
        `tensor "${name}" has unknown dtype ${String(dtype)}`,
      );
    }
    if (names.has(name)) {
      throw new SafetensorsError(
        "InvalidTensorView",
        name === metadataKey
          ? `a tensor may not be named ${metadataKey}: the format keeps that name`
          : `two tensors are named "${name}"; names must differ`,
      );
    }
    names.add(name);
    const size = tensorBytes(name, dtype, shape);
    const end = offset + size;
    if (!Number.isSafeInteger(end)) {
      throw new SafetensorsError(
        "ValidationOverflow",
        `the tensors up to "${name}" have ${end} bytes together; a file has fewer than 2^53`,
      );
    }
    fields.push(
      `${quote(name)}:{"dtype":"${dtype}","shape":[${shape.join(",")}],"data_offsets":[${offset},${end}]}`,
    );
    places.push({ name, dtype, shape, offset, size });
    offset = end;
  }
  const json = new TextEncoder().encode(`{${fields.join(",")}}`);
  const length = Math.ceil(json.length / 8) * 8;
  if (length > maximumHeaderBytes) {
    throw new SafetensorsError(
      "HeaderTooLarge",
      `the header of ${tensors.length} tensors has ${length} bytes; the format allows ${maximumHeaderBytes}`,
    );
  }
  const header = new Uint8Array(8 + length).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(length), true);
  header.set(json, 8);
  const start = header.byteLength;
  const placed = places.map((place) => ({ ...place, offset: start + place.offset }));
  return { header, tensors: placed, size: start + offset };
}

/**
 * The first bytes of the file (length and header), and the tensors in the order in which their data
 * must follow; for writing without holding the whole file in memory.
 */
export function safetensorsHeader(
  tensors: readonly TensorEntry[],
  metadata?: Readonly<Record<string, string>>,
): { header: Uint8Array<ArrayBuffer>; order: readonly TensorEntry[] } {
  const { header, tensors: placed } = layoutSafetensors(tensors, metadata);
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const order = placed.map(({ name, dtype, shape, size }) => {
    const tensor = byName.get(name)!;
    if (tensor.data.byteLength === size) return tensor;
    throw new SafetensorsError(
      "InvalidTensorView",
      `tensor "${name}" of ${dtype} [${shape.join(", ")}] needs ${size} bytes; its data has ${tensor.data.byteLength}`,
    );
  });
  return { header, order };
}

/** The bytes of a safetensors file of the tensors; deterministic, whatever the order they come in. */
export function encodeSafetensors(
  tensors: readonly TensorEntry[],
  metadata?: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  const { header, order } = safetensorsHeader(tensors, metadata);
  const size = order.reduce((sum, { data }) => sum + data.byteLength, header.byteLength);
  const file = new Uint8Array(size);
  file.set(header);
  let offset = header.byteLength;
  for (const { data } of order) {
    file.set(data, offset);
    offset += data.byteLength;
  }
  return file;
}

function metadataJson(metadata: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(metadata).sort(([a], [b]) => compareCodePoints(a, b));
  return `{${pairs.map(([key, value]) => `${quote(key)}:${quote(value)}`).join(",")}}`;
}

/** A JSON string; refuses lone surrogates, which have no UTF-8. */
function quote(text: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new SafetensorsError(
      "InvalidHeader",
      `${JSON.stringify(text)} has half a surrogate pair; names and metadata must be Unicode text`,
    );
  }
  return JSON.stringify(text);
}

/** Order by code point, which is the order of UTF-8 bytes; `<` on strings orders by UTF-16 unit. */
function compareCodePoints(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  const n = Math.min(x.length, y.length);
  for (let i = 0; i < n; i++) {
    const difference = x[i]!.codePointAt(0)! - y[i]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return x.length - y.length;
}
