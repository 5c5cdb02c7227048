/**
 * Who writes what of a checkpoint: each element once, whatever replicas there are, and replicas of
 * equal load taking turns, so that no rank writes what another has already and none writes all.
 */
import type { StoredPiece, StoredTensor } from "./checkpoint-index.ts";
import { dtypeBits } from "./dtype.ts";
import type { GlobalTensor } from "./global-tensor.ts";
import { type ParallelLayout, layoutRanks } from "./parallel-layout.ts";
import { type HeldPiece, type Holding, holders, placeTensors } from "./placement.ts";
import { type Region, elements } from "./region.ts";

/** A piece that a rank writes. */
export interface SavedPiece {
  readonly writer: number;
  /** What the piece is part of, on the writer and its replicas. */
  readonly holding: Holding;
  readonly piece: HeldPiece;
  /** Its name in the writer's file. */
  readonly key: string;
}

/** Who writes what. */
export interface SavePlan {
  readonly pieces: readonly SavedPiece[];
  /** Bytes that each rank writes. */
  readonly bytes: Float64Array;
  /** Where every region will be found. */
  readonly index: readonly StoredTensor[];
}

/** Options of `savePlan`. */
export interface SavePlanOptions {
  /** The file that a rank writes; default "rank-00000.safetensors". */
  readonly file?: (rank: number) => string;
}

/** The plan of a layout's checkpoint. Throws `LAYOUT` where the tensors do not fit the layout. */
export function savePlan(
  tensors: readonly GlobalTensor[],
  layout: ParallelLayout,
  options: SavePlanOptions = {},
): SavePlan {
  const { file = rankFileName } = options;
  const bytes = new Float64Array(layoutRanks(layout));
  const stored = tensors.map((): StoredPiece[] => []);
  const pieces: SavedPiece[] = [];
  for (const holding of placeTensors(tensors, layout)) {
    const main = holding.pieces.filter((piece) => piece.main);
    if (main.length === 0) continue;
    const { name, dtype, shape } = tensors[holding.tensor]!;
    const writer = leastLoaded(holders(holding), bytes);
    for (const piece of main) {
      const key = pieceKey(name, piece.region, shape);
      bytes[writer]! += (elements(piece.region.shape) * dtypeBits(dtype)) / 8;
      stored[holding.tensor]!.push({ file: file(writer), key, region: piece.region });
      pieces.push({ writer, holding, piece, key });
    }
  }
  const index = tensors.map(({ name, dtype, shape }, i) => ({
    name,
    dtype,
    shape,
    pieces: stored[i]!,
  }));
  return { pieces, bytes, index };
}

/** "rank-00012.safetensors". */
export function rankFileName(rank: number): string {
  return `rank-${String(rank).padStart(5, "0")}.safetensors`;
}

/** A piece's name in its file: the tensor's own where it is whole, else with the region behind. */
export function pieceKey(name: string, region: Region, shape: readonly number[]): string {
  if (region.shape.every((size, dim) => size === shape[dim])) return name;
  const ranges = region.start.map((start, dim) => `${start}:${start + region.shape[dim]!}`);
  return `${name}[${ranges.join(",")}]`;
}

/** The one of the ranks with the fewest bytes so far, the lowest of equals. */
export function leastLoaded(ranks: readonly number[], bytes: Float64Array): number {
  let best = ranks[0]!;
  for (const rank of ranks) if (bytes[rank]! < bytes[best]!) best = rank;
  return best;
}
