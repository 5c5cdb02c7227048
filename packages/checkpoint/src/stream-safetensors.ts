/**
 * Safetensors files that need not fit in memory: written as a stream of chunks, read by header first
 * and then chunk by chunk, or only the bytes of a region. Offsets are plain numbers, exact to 2⁵³.
 */
import { dtypeBits } from "./dtype.ts";
import { type PlacedTensor, type TensorInfo, layoutSafetensors } from "./encode-safetensors.ts";
import { type Region, elements, printRegion, regionRuns } from "./region.ts";
import { type SafetensorsHeader, headerBytes, readHeader } from "./safetensors-header.ts";
import { SafetensorsError } from "./safetensors-error.ts";
import { findNamed } from "./tensor-entry.ts";

/** Bytes that can be read at any place: a file, an object in a store, memory. */
export interface ByteSource {
  /** Bytes in all. */
  readonly size: number;
  /** The bytes [offset, offset + length), all of them. */
  read(offset: number, length: number): Uint8Array | Promise<Uint8Array>;
}

/** A file of which the header has been read and checked. */
export interface OpenSafetensors extends SafetensorsHeader {
  readonly source: ByteSource;
}

/** Options of `streamSafetensors`. */
export interface StreamOptions {
  readonly metadata?: Readonly<Record<string, string>>;
  /** Bytes of the longest chunk; default 64 MiB. */
  readonly chunk?: number;
}

const defaultChunk = 64 * 2 ** 20;
/** Bytes between two wanted runs that are rather read than skipped. */
const smallGap = 4096;

/**
 * The bytes of a file in chunks, first to last; `read` gives a tensor's bytes [offset, offset + length),
 * in order. The same bytes as of `encodeSafetensors`. Throws `SafetensorsError`, also where `read` gives
 * another length than asked for.
 */
export async function* streamSafetensors(
  tensors: readonly TensorInfo[],
  read: (tensor: PlacedTensor, offset: number, length: number) => Uint8Array | Promise<Uint8Array>,
  options: StreamOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const { metadata, chunk = defaultChunk } = options;
  const layout = layoutSafetensors(tensors, metadata);
  checkChunk(chunk);
  yield layout.header;
  for (const tensor of layout.tensors) {
    for (let offset = 0; offset < tensor.size; offset += chunk) {
      const length = Math.min(chunk, tensor.size - offset);
      yield whole(await read(tensor, offset, length), length, tensor.name);
    }
  }
}

/** Reads and checks the header of a file, and nothing else of it. */
export async function openSafetensors(source: ByteSource): Promise<OpenSafetensors> {
  const first = await source.read(0, Math.min(8, source.size));
  const length = headerBytes(first, source.size);
  const bytes = whole(await source.read(0, length), length, "the header");
  return { ...readHeader(bytes, source.size), source };
}

/** The bytes of a tensor in chunks, first to last. Throws `TensorNotFound`. */
export async function* tensorChunks(
  file: OpenSafetensors,
  name: string,
  chunk: number = defaultChunk,
): AsyncGenerator<Uint8Array, void, undefined> {
  checkChunk(chunk);
  const tensor = findNamed(file.tensors, name);
  for (let offset = 0; offset < tensor.size; offset += chunk) {
    const length = Math.min(chunk, tensor.size - offset);
    yield whole(await file.source.read(tensor.offset + offset, length), length, name);
  }
}

/**
 * The bytes of a region of a tensor, row-major. Reads no more than the region, small gaps between its
 * runs and at most 64 MiB at a time. Throws `TensorNotFound`, and `InvalidTensorView` for a region that
 * is not inside the tensor or of elements narrower than a byte.
 */
export async function readTensorRegion(
  file: OpenSafetensors,
  name: string,
  region: Region,
): Promise<Uint8Array<ArrayBuffer>> {
  const tensor = findNamed(file.tensors, name);
  checkRegion(tensor, region);
  const width = dtypeBits(tensor.dtype) / 8;
  const bytes = new Uint8Array(elements(region.shape) * width);
  let filled = 0;
  for (const { offset, length, runs } of joined(regionRuns(tensor.shape, region, width))) {
    const read = whole(await file.source.read(tensor.offset + offset, length), length, name);
    for (const run of runs) {
      bytes.set(read.subarray(run.offset - offset, run.offset - offset + run.length), filled);
      filled += run.length;
    }
  }
  return bytes;
}

interface Run {
  readonly offset: number;
  readonly length: number;
}

/** Runs joined to reads over small gaps, and cut where they are long. */
function* joined(runs: Iterable<Run>): Generator<Run & { readonly runs: readonly Run[] }> {
  let group: Run[] = [];
  let start = 0;
  let end = 0;
  for (const run of runs) {
    for (let at = 0; at < run.length; at += defaultChunk) {
      const part = { offset: run.offset + at, length: Math.min(defaultChunk, run.length - at) };
      const far = part.offset - end > smallGap;
      if (group.length > 0 && (far || part.offset + part.length - start > defaultChunk)) {
        yield { offset: start, length: end - start, runs: group };
        group = [];
      }
      if (group.length === 0) start = part.offset;
      group.push(part);
      end = part.offset + part.length;
    }
  }
  if (group.length > 0) yield { offset: start, length: end - start, runs: group };
}

function checkRegion({ name, dtype, shape }: PlacedTensor, region: Region): void {
  const inside =
    region.start.length === shape.length &&
    region.shape.length === shape.length &&
    shape.every((size, dim) => {
      const [start, length] = [region.start[dim]!, region.shape[dim]!];
      const integers = Number.isSafeInteger(start) && Number.isSafeInteger(length);
      return integers && start >= 0 && length >= 0 && start + length <= size;
    });
  if (inside && dtypeBits(dtype) % 8 === 0) return;
  throw new SafetensorsError(
    "InvalidTensorView",
    inside
      ? `tensor "${name}" of ${dtype} cannot be read in part: its elements are no whole bytes`
      : `region ${printRegion(region)} is not inside tensor "${name}" of [${shape.join(", ")}]`,
  );
}

function checkChunk(chunk: number): void {
  if (Number.isSafeInteger(chunk) && chunk >= 1) return;
  throw new SafetensorsError(
    "InvalidTensorView",
    `chunk ${chunk}: it is an integer of at least 1 byte`,
  );
}

function whole(bytes: Uint8Array, length: number, name: string): Uint8Array {
  if (bytes.byteLength === length) return bytes;
  throw new SafetensorsError(
    "MetadataIncompleteBuffer",
    `${bytes.byteLength} bytes came of ${name} where ${length} were asked for`,
  );
}
