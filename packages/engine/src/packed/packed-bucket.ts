/**
 * Frozen matrices in 4, 8 or 16 bits that the same ranks hold, in one block of bytes. A product borrows a
 * matrix in float32 for as long as it takes (QLoRA, 2023, equation 5). With ZeRO 3 the replicas share
 * the block out.
 */
import { dtypeBits } from "@trireme/checkpoint";
import type { Communicator, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Gradients } from "../memory/gradient-block.ts";
import { initialize } from "../parameters/initial-values.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { ParameterSpec } from "../parameters/parameter.ts";
import { type HeldPart, boxesOf, writeBox } from "../weights/pieces.ts";
import type { Pool } from "../memory/pool.ts";
import { type Range, partDims, runsOf } from "../memory/slice.ts";
import type { PackedValues } from "./packed-values.ts";
import type { Parameter } from "../tape/tape.ts";
import { type Tensor, elements } from "../memory/tensor.ts";
import { nf4Block, nf4Codebook } from "./nf4.ts";
import {
  type PackedBase,
  type PackedRole,
  type PackedTensor,
  laidOut,
  packMatrix,
  packedTensors,
} from "./packed-matrix.ts";
import { dynamicMap } from "./packed-scales.ts";

/** What a packed bucket is made of. */
export interface PackedBucketOptions {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly specs: readonly ParameterSpec[];
  readonly base: PackedBase;
  readonly seed: number;
  /** The ranks that hold the same. */
  readonly replicas: Communicator;
  readonly zero: 0 | 1 | 2 | 3;
  /** Of ranks that share the matrices out, whether this one stores what all of them hold. */
  readonly isFirst: boolean;
  /** Whether the rank stores nothing: what it has are copies. */
  readonly isCopy: boolean;
}

/** Bytes between the beginnings of neighbours: whole cache lines. */
const line = 64;

interface PlacedTensor extends PackedTensor {
  /** In the block, in bytes. */
  readonly offset: Bytes;
  /** Of the rank's part. */
  readonly size: Bytes;
  /** Bytes of an element. */
  readonly width: number;
}

export class PackedBucket {
  readonly frozen = true;
  readonly parameters: readonly PackedParameter[];
  /** Length of the block. */
  readonly bytes: Bytes;
  readonly #options: PackedBucketOptions;
  /** What is kept: all of the block, or the rank's share. */
  readonly #own: Range & { readonly pointer: number };
  #block: number | undefined;

  constructor(options: PackedBucketOptions) {
    const { pool, specs, base, replicas, zero } = options;
    this.#options = options;
    let end = 0;
    this.parameters = specs.map((spec) => {
      const tensors = packedTensors(spec, base).map((tensor): PlacedTensor => {
        const width = dtypeBits(tensor.dtype) / 8;
        const size = elements(partDims(tensor.dims, tensor.slice)) * width;
        const placed = { ...tensor, offset: end, size, width };
        end = roundUp(end + size);
        return placed;
      });
      return new PackedParameter(this, options, spec, tensors);
    });
    const shares = zero === 3 ? replicas.ranks : 1;
    const count = roundUp(Math.ceil(end / shares));
    this.bytes = count * shares;
    const start = zero === 3 ? count * replicas.rank : 0;
    this.#own = { start, count, pointer: pool.allocateBytes(count) };
    this.#block = zero === 3 ? undefined : this.#own.pointer;
    new Uint8Array(pool.memory.buffer, this.#own.pointer, count).fill(0);
    for (const { spec } of this.parameters) {
      const values = new Float32Array(elements(spec.dims));
      initialize(values, { ...spec, slice: undefined }, options.seed);
      this.pack(spec.name, values);
    }
  }

  /** Where the whole block is; there is none while it is sharded. */
  get pointer(): number {
    if (this.#block === undefined) throw new Error(`${this.parameters[0]?.name} is sharded`);
    return this.#block;
  }

  /** Whether there is only the own share now. */
  get sharded(): boolean {
    return this.#block === undefined;
  }

  /** Gathers the block where it is sharded (ZeRO 3); it may be read when the work is over. */
  unshard(): Work | undefined {
    if (this.#block !== undefined) return undefined;
    const { pool, replicas } = this.#options;
    this.#block = pool.allocateBytes(this.bytes);
    const { buffer } = pool.memory;
    const own = new Int32Array(buffer, this.#own.pointer, this.#own.count / 4);
    return replicas.allGather(own, new Int32Array(buffer, this.#block, this.bytes / 4));
  }

  /** Frees the whole block where it is sharded. */
  reshard(): void {
    if (this.#options.zero < 3 || this.#block === undefined) return;
    this.#options.pool.freeBytes(this.#block, this.bytes);
    this.#block = undefined;
  }

  /** Parts that this rank stores: replicas that hold the same share them out. */
  get storedParts(): HeldPart[] {
    const { zero, replicas, isFirst, isCopy } = this.#options;
    if (isCopy) return [];
    const share = roundUp(Math.ceil(this.bytes / replicas.ranks));
    const range = zero === 3 ? this.#own : { start: share * replicas.rank, count: share };
    return this.#partsIn(this.parameters, range, ({ slice }) => slice !== undefined || isFirst);
  }

  /** Parts that this rank keeps. */
  get keptParts(): HeldPart[] {
    return this.#partsIn(this.parameters, this.#own, () => true);
  }

  /** Packs the whole values [inputs, outputs] of a matrix into what this rank keeps of it. */
  pack(name: string, values: Float32Array): void {
    const parameter = this.parameters.find((found) => found.name === name)!;
    const packed = packMatrix(values, parameter.spec.dims, this.#options.base);
    const roles = new Map(parameter.tensors.map((tensor) => [tensor.name, tensor.role]));
    for (const part of this.#partsIn([parameter], this.#own, () => true)) {
      const region = { start: part.dims.map(() => 0), shape: part.dims };
      const bytes = packed.get(roles.get(part.name)!)!;
      for (const box of part.boxes) writeBox(part, box, { region, bytes });
    }
  }

  #partsIn(
    parameters: readonly PackedParameter[],
    { start, count }: Range,
    isWanted: (tensor: PlacedTensor) => boolean,
  ): HeldPart[] {
    const { memory } = this.#options.pool;
    return parameters.flatMap(({ tensors, spec }) =>
      tensors.filter(isWanted).flatMap((tensor): HeldPart[] => {
        const { name, dtype, dims, slice, offset, size, width } = tensor;
        const begin = Math.max(offset, start);
        const end = Math.min(offset + size, start + count);
        if (begin >= end) return [];
        const at = this.#own.pointer + begin - this.#own.start;
        const bytes = new Uint8Array(memory.buffer, at, end - begin);
        const [from, to] = [(begin - offset) / width, (end - offset) / width];
        const shape = partDims(dims, slice);
        const boxes = boxesOf(dims, slice, from, to);
        const unpacked = { name: spec.name, dims: spec.dims };
        return [{ name, dtype, dims, memory: { bytes, shape, from }, boxes, unpacked }];
      }),
    );
  }
}

/** A matrix in a packed bucket. */
class PackedParameter implements Parameter {
  readonly spec: ParameterSpec;
  readonly dims: readonly number[];
  readonly frozen = true;
  readonly tensors: readonly PlacedTensor[];
  readonly packed: PackedValues;

  constructor(
    bucket: PackedBucket,
    { base, pool, kernels }: PackedBucketOptions,
    spec: ParameterSpec,
    tensors: readonly PlacedTensor[],
  ) {
    this.spec = spec;
    this.tensors = tensors;
    const { dims, slice } = laidOut(spec, base);
    const own = partDims(dims, slice);
    this.dims = own;
    const place = (role: PackedRole): number =>
      bucket.pointer + tensors.find((tensor) => tensor.role === role)!.offset;
    const blocks = runsOf(dims, slice).map(({ whole, part, length }) => ({
      first: whole / nf4Block,
      at: part / nf4Block,
      count: Math.ceil(length / nf4Block),
    }));
    const all = blocks.reduce((sum, { count }) => sum + count, 0);
    const unpackNf4 = (out: number): void => {
      const scales = pool.allocate([all]);
      const tables = pool.allocate([nf4Codebook.length + dynamicMap.length]);
      const { buffer } = pool.memory;
      const codebook = new Float32Array(buffer, tables.pointer, tables.size);
      codebook.set(nf4Codebook);
      codebook.set(dynamicMap, nf4Codebook.length);
      const map = tables.pointer + nf4Codebook.byteLength;
      const offset = new Float32Array(buffer, place("offset"), 1)[0]!;
      for (const { first, at, count } of blocks) {
        const [codes, into] = [place("scales") + at, scales.pointer + at * 4];
        kernels.unpackScales(codes, first, place("groups"), offset, map, into, count);
      }
      kernels.unpackNf4(place("codes"), scales.pointer, tables.pointer, out, elements(own));
      pool.free(tables);
      pool.free(scales);
    };
    const unpackInt8 = (out: number): void => {
      kernels.unpackInt8(place("codes"), place("scales"), out, own[0]!, own[1]!);
    };
    const unpackRows = (out: number, first: number, count: number): void => {
      kernels.fromBf16(place("codes") + first * own[1]! * 2, out, count * own[1]!);
    };
    const unpackBf16 = (out: number): void => unpackRows(out, 0, own[0]!);
    const unpack = { nf4: unpackNf4, int8: unpackInt8, bf16: unpackBf16 }[base];
    const isHalf = base === "bf16";
    this.packed = { turned: !isHalf, unpack, ...(isHalf && { unpackRows }) };
  }

  get name(): string {
    return this.spec.name;
  }

  get value(): Tensor {
    throw new Error(`${this.name} is packed; a product borrows its values`);
  }

  get gradient(): Gradients {
    throw new Error(`${this.name} is frozen`);
  }
}

function roundUp(bytes: Bytes): Bytes {
  return Math.ceil(bytes / line) * line;
}
