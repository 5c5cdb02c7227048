/**
 * The kernels by WebAssembly's relaxed SIMD: multiply and add are one instruction, rounded once, where
 * the processor has one (x86 with FMA, every 64-bit ARM); bits then differ from processors without.
 */
import { setFlagsFromString } from "node:v8";
import { TriremeError } from "@trireme/core";
import type { FoundBackend } from "./gemm-backend.ts";
import { fusedModule } from "./fused-module.ts";
import { type Kernels, decodeBase64 } from "./kernels.ts";

/** Has the engine compiled it? Node 20 must be told to; from Node 22 on it is on. */
const flag = "--experimental-wasm-relaxed-simd";

let compiled: WebAssembly.Module | undefined;

/** The backend over a rank's memory: all of the kernels. */
export function fusedKernels(memory: WebAssembly.Memory): FoundBackend {
  if (compiled === undefined) {
    const bytes = decodeBase64(fusedModule);
    if (!WebAssembly.validate(bytes)) setFlagsFromString(flag);
    if (!WebAssembly.validate(bytes)) {
      const reason = `fused products: this JavaScript engine has no relaxed SIMD; use "wasm"`;
      return { ok: false, error: new TriremeError("FUSED_GEMM", reason) };
    }
    compiled = new WebAssembly.Module(bytes);
  }
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- assembly/index.ts exports just these
  return { ok: true, backend: { name: "fused WebAssembly", ...(exports as unknown as Kernels) } };
}
