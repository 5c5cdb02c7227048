/** A sharded checkpoint, rank by rank: the files that a rank writes, and what it reads back under any layout. */
import {
  type Assembly,
  type GlobalTensor,
  type Holding,
  type OpenSafetensors,
  type ReadPlan,
  type SavePlan,
  type SavedPiece,
  assemble,
  cutPiece,
  encodeCheckpointIndex,
  indexFileName,
  openSafetensors,
  rankFileName,
  readTensorRegion,
  streamSafetensors,
} from "@trireme/checkpoint";
import type { SnapshotFile } from "../runtime.ts";
import type { OpenCheckpoint } from "./open-checkpoint.ts";
import { type StreamedFile, chunkBytes } from "./write-files.ts";

/** The bytes [offset, offset + length) of a piece, row-major; asked for in order, piece after piece. */
export type PieceReader = (
  piece: SavedPiece,
  offset: number,
  length: number,
) => Uint8Array | Promise<Uint8Array>;

/** What a rank writes. */
export interface RankFilesOptions {
  /** As given to `savePlan`, which names files by its default. */
  readonly tensors: readonly GlobalTensor[];
  readonly plan: SavePlan;
  readonly rank: number;
  readonly read: PieceReader;
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * The files of one rank for `writeFiles`: its safetensors file, streamed, and of rank 0 the index.
 * A rank to which the plan gives nothing has none.
 */
export function rankFiles(options: RankFilesOptions): readonly (SnapshotFile | StreamedFile)[] {
  const { tensors, plan, rank, read, metadata = {} } = options;
  const index = { name: indexFileName, bytes: encodeCheckpointIndex(plan.index) };
  const pieces = plan.pieces.filter(({ writer }) => writer === rank);
  const byKey = new Map(pieces.map((piece) => [piece.key, piece]));
  const infos = pieces.map(({ key, holding, piece }) => ({
    name: key,
    dtype: tensors[holding.tensor]!.dtype,
    shape: piece.region.shape,
  }));
  const file = {
    name: rankFileName(rank),
    chunks: () =>
      streamSafetensors(
        infos,
        ({ name }, offset, length) => read(byKey.get(name)!, offset, length),
        {
          metadata,
          chunk: chunkBytes,
        },
      ),
  };
  return [...(rank === 0 ? [index] : []), ...(pieces.length === 0 ? [] : [file])];
}

/** Reads pieces of what a rank has in memory; `held` gives a holding's bytes. Keeps one piece at a time. */
export function heldPieces(
  tensors: readonly GlobalTensor[],
  held: (holding: Holding) => Uint8Array,
): PieceReader {
  let current: { readonly piece: SavedPiece; readonly bytes: Uint8Array } | undefined;
  return (piece, offset, length) => {
    if (current?.piece !== piece) {
      const { holding } = piece;
      const bytes = cutPiece(tensors[holding.tensor]!, holding, held(holding), piece.piece);
      current = { piece, bytes };
    }
    return current.bytes.subarray(offset, offset + length);
  };
}

/** Something a rank holds, read back. */
export interface LoadedHolding {
  /** What it is, and who else of its data-parallel group holds the same. */
  readonly assembly: Assembly;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * What a rank is the reader of, one holding at a time, whatever layout wrote the checkpoint; holdings
 * without a member then go to the whole group. Reads no more than the regions it needs, without their
 * checksums: `verify` the checkpoint first where that matters.
 * @throws TriremeError "DAMAGED" where a file is missing or short, and what `readTensorRegion` throws.
 */
export async function* readRank(
  checkpoint: OpenCheckpoint,
  tensors: readonly GlobalTensor[],
  plan: ReadPlan,
  rank: number,
): AsyncGenerator<LoadedHolding, void, undefined> {
  const open = new Map<string, Promise<OpenSafetensors>>();
  const fileOf = (name: string): Promise<OpenSafetensors> => {
    const file = open.get(name) ?? openSafetensors(checkpoint.source(name));
    open.set(name, file);
    return file;
  };
  for (const assembly of plan.assemblies) {
    if (assembly.reader !== rank) continue;
    const read = new Map<object, Uint8Array>();
    const copies = [];
    for (const copy of assembly.copies) {
      const { source, region } = copy;
      const start = region.start.map((at, dim) => at - source.region.start[dim]!);
      const inPiece = { start, shape: region.shape };
      const wanted = { ...copy, source: { ...source, region } };
      read.set(wanted, await readTensorRegion(await fileOf(source.file), source.key, inPiece));
      copies.push(wanted);
    }
    const tensor = tensors[assembly.holding.tensor]!;
    const bytes = assemble(tensor, { ...assembly, copies }, (copy) => read.get(copy)!);
    yield { assembly, bytes };
  }
}
