/** The WebAssembly sums of `assembly/add.ts`, bound to an arena. Offsets are bytes in the arena. */
import type { ElementType } from "./element-type.ts";
import type { SharedMemory } from "./arena.ts";
import { kernelBytes } from "./kernel-bytes.ts";

export interface AddKernel {
  addF32(out: number, a: number, b: number, n: number): void;
  addI32(out: number, a: number, b: number, n: number): void;
  widenBf16(out: number, a: number, n: number): void;
  addBf16(out: number, a: number, n: number): void;
  narrowBf16(out: number, a: number, n: number): void;
  move(out: number, a: number, bytes: number): void;
}

interface WebAssemblyHost {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: AddKernel };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function decodeBase64(text: string): Uint8Array {
  const digits = text.replace(/=+$/, "");
  const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
  let [bits, held, at] = [0, 0, 0];
  for (const digit of digits) {
    held = ((held << 6) | alphabet.indexOf(digit)) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = held >>> bits;
    }
  }
  return bytes;
}

let compiled: object | undefined;

export function addKernel(memory: SharedMemory): AddKernel {
  const host: WebAssemblyHost = Reflect.get(globalThis, "WebAssembly");
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
