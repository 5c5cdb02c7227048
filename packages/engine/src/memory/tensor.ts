/** A dense row-major f32 array in a rank's WebAssembly memory. */
export interface Tensor {
  /** Byte offset of the first element. */
  readonly pointer: number;
  /** Length of each dim, outermost first. */
  readonly dims: readonly number[];
  /** Number of elements: the product of `dims`. */
  readonly size: number;
}

/** The number of elements of an array with these dims. */
export function elements(dims: readonly number[]): number {
  let n = 1;
  for (const dim of dims) n *= dim;
  return n;
}

/** Rows and columns of a matrix. */
export function matrixDims({ dims }: Tensor): readonly [rows: number, cols: number] {
  const [rows, cols] = dims;
  if (rows === undefined || cols === undefined) throw new Error(`[${dims.join()}] is no matrix`);
  return [rows, cols];
}

/** The tensor's elements, as a view that stays valid when the memory grows (it is shared). */
export function view(memory: WebAssembly.Memory, tensor: Tensor): Float32Array {
  // The place first: a memory that grows for it has another buffer.
  const { pointer, size } = tensor;
  return new Float32Array(memory.buffer, pointer, size);
}

/** Elements `start`..`start + count` of a flat block. */
export function part(block: Tensor, start: number, count: number): Tensor {
  return { pointer: block.pointer + start * 4, dims: [count], size: count };
}
