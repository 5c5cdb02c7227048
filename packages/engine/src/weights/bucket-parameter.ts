import type { Bucket } from "./bucket.ts";
import { type Gradients, gradientPart } from "../memory/gradient-block.ts";
import type { ParameterSpec } from "../parameters/parameter.ts";
import { type Range, partDims } from "../memory/slice.ts";
import type { PackedValues } from "../packed/packed-values.ts";
import type { Parameter } from "../tape/tape.ts";
import { type Tensor, elements } from "../memory/tensor.ts";

/** A parameter in a bucket: its place in the flat blocks. */
export class BucketParameter implements Parameter {
  readonly spec: ParameterSpec;
  /** Of this rank's part. */
  readonly dims: readonly number[];
  readonly size: number;
  /** In the flat blocks. */
  readonly offset: number;
  readonly #bucket: Bucket;

  constructor(bucket: Bucket, spec: ParameterSpec, offset: number) {
    this.#bucket = bucket;
    this.spec = spec;
    this.dims = partDims(spec.dims, spec.slice);
    this.size = elements(this.dims);
    this.offset = offset;
  }

  get name(): string {
    return this.spec.name;
  }

  get frozen(): boolean {
    return this.#bucket.frozen;
  }

  get value(): Tensor {
    return this.#at(this.#bucket.values);
  }

  get packed(): PackedValues | undefined {
    const { halves } = this.#bucket;
    if (halves === undefined) return undefined;
    const { dims, offset, size } = this;
    const width = dims.at(-1)!;
    return {
      turned: false,
      unpack: (out) => halves.unpack(offset, size, out),
      unpackRows: (out, first, count) => {
        halves.unpack(offset + first * width, count * width, out);
      },
    };
  }

  get gradient(): Gradients {
    return gradientPart(this.#bucket.gradients.whole, this.offset, this.size);
  }

  /** The elements that this rank updates, counted from the beginning of the bucket's segment. */
  get updated(): Range {
    const { start, count } = this.#bucket.segment;
    const from = Math.max(this.offset, start);
    const end = Math.min(this.offset + this.size, start + count);
    return { start: from - start, count: Math.max(0, end - from) };
  }

  #at(block: Tensor): Tensor {
    return { pointer: block.pointer + this.offset * 4, dims: this.dims, size: this.size };
  }
}
