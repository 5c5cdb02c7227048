/** What stages on different ranks send each other, in the format that activations are kept in. */
import { RestingTensor } from "../memory/resting-tensor.ts";
import type { Tape } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";

/** The elements of a message, where they lie. */
type Elements = Float32Array | Uint16Array;

/** The elements of a tensor to be sent; they stay until the tape frees it. */
export function outgoing(tape: Tape, tensor: Tensor): Elements {
  const { memory } = tape.pool;
  if (tape.products.storage === undefined) return view(memory, tensor);
  return halves(memory, tensor instanceof RestingTensor ? tensor : rested(tape, tensor));
}

/** A tensor to be received, and where its elements go. */
export function incoming(
  tape: Tape,
  dims: readonly number[],
): { readonly tensor: Tensor; readonly elements: Elements } {
  const { memory } = tape.pool;
  const tensor = tape.activation(dims);
  if (!(tensor instanceof RestingTensor)) return { tensor, elements: view(memory, tensor) };
  const pointer = tensor.receive();
  return { tensor, elements: new Uint16Array(memory.buffer, pointer, tensor.size) };
}

function rested(tape: Tape, tensor: Tensor): RestingTensor {
  const copy = new RestingTensor(tape.pool, tape.kernels, tensor.dims);
  tape.own(copy);
  tape.pool.copy(tensor.pointer, copy.pointer, tensor.size);
  copy.rest();
  tape.free(tensor);
  return copy;
}

function halves(memory: WebAssembly.Memory, tensor: RestingTensor): Uint16Array {
  const pointer = tensor.rest();
  return new Uint16Array(memory.buffer, pointer, tensor.size);
}
