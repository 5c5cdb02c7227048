/**
 * The WebAssembly of `assembly/compress.as`, with a memory of its own that holds one block: its input,
 * its output and its scales, with room behind each for the vector that a kernel writes past the end.
 */
import { type WebAssemblyHost, decodeBase64 } from "../web-assembly.ts";
import { compressBytes } from "./compress-bytes.ts";

export interface CompressKernel {
  readonly memory: { readonly buffer: ArrayBuffer };
  widenBf16(out: number, a: number, n: number): void;
  narrowBf16(out: number, a: number, n: number): void;
  addBf16(out: number, a: number, n: number): void;
  addF32(out: number, a: number, n: number): void;
  largest(a: number, n: number, largest: number): number;
  largestEach(out: number, a: number, n: number): void;
  quantize(out: number, a: number, scales: number, n: number, each: boolean): void;
  dequantize(out: number, a: number, scales: number, n: number, each: boolean): void;
}

/** Elements of a block; one array of f32 is 256 KiB, and two stay in a core's cache. */
export const blockElements = 65_536;
const slack = 4096;
const area = blockElements * 4 + slack;

/** Byte offsets in the kernel's memory. */
export const areas: Readonly<Record<"input" | "output" | "scales", number>> = {
  input: slack,
  output: slack + area,
  scales: slack + 2 * area,
};

let instance: CompressKernel | undefined;

/** The kernel of this thread; a block in it lasts until the next call. */
export function compressKernel(): CompressKernel {
  if (instance !== undefined) return instance;
  const host: WebAssemblyHost<CompressKernel> = Reflect.get(globalThis, "WebAssembly");
  const { Module, Instance } = host;
  return (instance = new Instance(new Module(decodeBase64(compressBytes)), {}).exports);
}
