/** The WebAssembly sums of `assembly/add.as`, bound to an arena. Offsets are bytes in the arena. */
import type { ElementType } from "./element-type.ts";
import type { SharedMemory } from "./arena.ts";
import { type WebAssemblyHost, decodeBase64 } from "../web-assembly.ts";
import { kernelBytes } from "./kernel-bytes.ts";

export interface AddKernel {
  addF32(out: number, a: number, b: number, n: number): void;
  addI32(out: number, a: number, b: number, n: number): void;
  widenBf16(out: number, a: number, n: number): void;
  addBf16(out: number, a: number, n: number): void;
  narrowBf16(out: number, a: number, n: number): void;
  move(out: number, a: number, bytes: number): void;
}

let compiled: object | undefined;

export function addKernel(memory: SharedMemory): AddKernel {
  const host: WebAssemblyHost<AddKernel> = Reflect.get(globalThis, "WebAssembly");
  const { Module, Instance } = host;
  compiled ??= new Module(decodeBase64(kernelBytes));
  return new Instance(compiled, { env: { memory } }).exports;
}

/** out = a + b for f32 and i32. */
export function add(
  kernel: AddKernel,
  type: ElementType,
  out: number,
  a: number,
  b: number,
  n: number,
): void {
  if (type === "f32") kernel.addF32(out, a, b, n);
  else kernel.addI32(out, a, b, n);
}
