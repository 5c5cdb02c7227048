/** A rank's share of a checkpoint as a safetensors file, laid out once and filled as often as asked. */
import { type Dtype, type Region, layoutSafetensors, pieceKey } from "@trireme/checkpoint";
import type { Bytes } from "@trireme/core";
import type { Bucket } from "../weights/bucket.ts";
import type { PackedBucket } from "../packed/packed-bucket.ts";
import { type HeldPart, partsIn, readBox, storedKinds } from "../weights/pieces.ts";

/** A box of a tensor in a file. */
export interface FilePiece {
  /** Of the whole tensor. */
  readonly name: string;
  readonly dtype: Dtype;
  readonly dims: readonly number[];
  /** Its name in the file. */
  readonly key: string;
  readonly region: Region;
  /** Of a matrix in fewer bits: the matrix in float32 that it is made from. */
  readonly unpacked?: HeldPart["unpacked"];
}

/** What a rank's file has; a rank to which nothing falls has no file. */
export interface StateFileLayout {
  /** Of the whole file; 0 without pieces. */
  readonly size: Bytes;
  readonly pieces: readonly FilePiece[];
}

/** Parts that a rank stores: of each bucket the share that falls to it among those who hold the same. */
export function storedParts(
  buckets: readonly Bucket[],
  packed: readonly PackedBucket[],
): HeldPart[] {
  const parts = buckets.flatMap((bucket) =>
    storedKinds.flatMap((kind) => partsIn(bucket, kind, bucket.stored)),
  );
  return [...parts, ...packed.flatMap((bucket) => bucket.storedParts)];
}

export class StateFile {
  readonly layout: StateFileLayout;
  readonly #header: Uint8Array;
  /** Copies each piece to its place in a file. */
  readonly #copies: readonly ((file: Uint8Array) => void)[];

  constructor(parts: readonly HeldPart[]) {
    const placed = parts.flatMap((part) =>
      part.boxes.map((box) => {
        const { name, dtype, dims, unpacked } = part;
        const { region } = box;
        return {
          part,
          box,
          piece: {
            name,
            dtype,
            dims,
            key: pieceKey(name, region, dims),
            region,
            ...(unpacked && { unpacked }),
          },
        };
      }),
    );
    const infos = placed.map(({ piece: { key, dtype, region } }) => {
      return { name: key, dtype, shape: region.shape };
    });
    const { header, tensors, size } = layoutSafetensors(infos, { format: "pt" });
    const places = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    this.#header = header;
    this.#copies = placed.map(({ part, box, piece: { key } }) => {
      const place = places.get(key)!;
      return (file) => {
        readBox(part, box, file.subarray(place.offset, place.offset + place.size));
      };
    });
    const pieces = placed.map(({ piece }) => piece);
    this.layout = { size: pieces.length === 0 ? 0 : size, pieces };
  }

  /** Writes the file as the state is now to `file`, which has its size. */
  write(file: Uint8Array): void {
    if (this.#copies.length === 0) return;
    file.set(this.#header);
    for (const copy of this.#copies) copy(file);
  }
}
