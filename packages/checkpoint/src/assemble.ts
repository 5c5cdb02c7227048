/** Carries save and read plans out on bytes: pieces cut from what a rank holds, and put together. */
import { TriremeError } from "@trireme/core";
import { dtypeBits } from "./dtype.ts";
import type { GlobalTensor } from "./global-tensor.ts";
import type { HeldPiece, Holding } from "./placement.ts";
import type { Assembly, RegionCopy } from "./read-plan.ts";
import { copyRegion, elements } from "./region.ts";

/** Bytes of what a holding holds of the tensor. */
export function holdingBytes({ from, to }: Holding, tensor: GlobalTensor): number {
  return ((to - from) * dtypeBits(tensor.dtype)) / 8;
}

/** The bytes of one piece, row-major, out of those of its holding. */
export function cutPiece(
  tensor: GlobalTensor,
  holding: Holding,
  held: Uint8Array,
  piece: HeldPiece,
): Uint8Array<ArrayBuffer> {
  const { shape } = piece.region;
  checkLength(tensor.name, held, holdingBytes(holding, tensor));
  const width = dtypeBits(tensor.dtype) / 8;
  const bytes = new Uint8Array(elements(shape) * width);
  const start = shape.map(() => 0);
  const source = { bytes: held, shape: holding.shape, from: holding.from };
  copyRegion(source, piece.local, { bytes, shape, from: 0 }, start, shape, width);
  return bytes;
}

/**
 * The bytes of a holding, put together from stored pieces, which `read` gives whole (row-major, in the
 * shape of their region).
 */
export function assemble(
  tensor: GlobalTensor,
  { holding, copies }: Assembly,
  read: (copy: RegionCopy) => Uint8Array,
): Uint8Array<ArrayBuffer> {
  const width = dtypeBits(tensor.dtype) / 8;
  const bytes = new Uint8Array(holdingBytes(holding, tensor));
  const target = { bytes, shape: holding.shape, from: holding.from };
  for (const copy of copies) {
    const { region: stored } = copy.source;
    const piece = read(copy);
    checkLength(copy.source.key, piece, elements(stored.shape) * width);
    const start = copy.region.start.map((x, dim) => x - stored.start[dim]!);
    const source = { bytes: piece, shape: stored.shape, from: 0 };
    copyRegion(source, start, target, copy.local, copy.region.shape, width);
  }
  return bytes;
}

function checkLength(name: string, bytes: Uint8Array, wanted: number): void {
  if (bytes.byteLength !== wanted) {
    throw new TriremeError(
      "CHECKPOINT",
      `"${name}" has ${bytes.byteLength} bytes; ${wanted} are due`,
    );
  }
}
