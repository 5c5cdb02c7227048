/** The files of a run's snapshots: one for each rank that has something to store, and their index. */
import {
  type StoredPiece,
  encodeCheckpointIndex,
  indexFileName,
  rankFileName,
} from "@trireme/checkpoint";
import type { Bytes } from "@trireme/core";
import { type SnapshotBuffer, type SnapshotFile, type SnapshotSize } from "@trireme/runtime";
import type { FilePiece, StateFileLayout } from "./state-file.ts";

/** A tensor of a run, whole. */
export type NeededTensor = Pick<FilePiece, "name" | "dtype" | "dims" | "unpacked">;

/** Memory for a rank's file; undefined for a rank without one. */
export type RankFileMemory = Uint8Array<SharedArrayBuffer> | undefined;

export class SnapshotFiles {
  /** Every tensor of the run's state. */
  readonly tensors: readonly NeededTensor[];
  /** In the order of `take`. */
  readonly sizes: readonly SnapshotSize[];
  readonly #index: Uint8Array;
  readonly #ranks: readonly StateFileLayout[];

  /** @param ranks What the file of each rank has. */
  constructor(ranks: readonly StateFileLayout[]) {
    this.#ranks = ranks;
    const tensors = new Map<string, NeededTensor & { readonly pieces: StoredPiece[] }>();
    ranks.forEach(({ pieces }, rank) => {
      for (const { key, region, ...piece } of pieces) {
        const { name } = piece;
        const tensor = tensors.get(name) ?? { ...piece, pieces: [] };
        tensor.pieces.push({ file: rankFileName(rank), key, region });
        tensors.set(name, tensor);
      }
    });
    this.tensors = [...tensors.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.#index = encodeCheckpointIndex(
      this.tensors.map((tensor) => ({ ...tensors.get(tensor.name)!, shape: tensor.dims })),
    );
    this.sizes = [
      { name: indexFileName, size: this.#index.byteLength },
      ...ranks.flatMap(({ size }, rank) => (size === 0 ? [] : { name: rankFileName(rank), size })),
    ];
  }

  /** Memory of a buffer for the file of each rank, which the ranks fill. */
  take(buffer: SnapshotBuffer): readonly RankFileMemory[] {
    return this.#ranks.map(({ size }, rank) =>
      size === 0 ? undefined : buffer.take(rankFileName(rank), size),
    );
  }

  /** Bytes of a rank's file; 0 where it has none. */
  rankSize(rank: number): Bytes {
    return this.#ranks[rank]!.size;
  }

  /** All files of a snapshot, from those of the ranks. */
  withIndex(ranks: readonly RankFileMemory[]): readonly SnapshotFile[] {
    const files = ranks.flatMap((bytes, rank) =>
      bytes === undefined ? [] : { name: rankFileName(rank), bytes },
    );
    return [{ name: indexFileName, bytes: this.#index }, ...files];
  }
}
