/** The memory that holds a rank's tensors. */
import { kernelMemoryDescriptor, pageBytes } from "../kernels/kernels.ts";

/** What a rank begins with; its pool grows it. */
const initialBytes = 1 << 20;

/** A fresh memory, and the first byte that tensors may use: the first page holds the kernels' constants. */
export function createRankMemory(): { memory: WebAssembly.Memory; base: number } {
  return { memory: new WebAssembly.Memory(kernelMemoryDescriptor(initialBytes)), base: pageBytes };
}
