/** Who makes the matrix products: the WebAssembly kernels, or another library on the same memory. */
import type { TriremeError } from "@trireme/core";
import { fusedGemm } from "./fused-gemm.ts";
import type { Kernels } from "./kernels.ts";
import { openBlas } from "./open-blas.ts";

/**
 * What a backend offers: products over a rank's memory, as `Kernels` says. Whatever it has no product
 * for stays with the kernels, so that a backend need not know the rest of the model.
 */
export interface GemmBackend extends Pick<Kernels, "gemm" | "gemmWorkspace"> {
  /** What errors and logs call it. */
  readonly name: string;
}

/** A backend, or why there is none. */
export type FoundBackend =
  | { readonly ok: true; readonly backend: GemmBackend }
  | { readonly ok: false; readonly error: TriremeError };

/**
 * `wasm`: the kernels, the same bits everywhere. `fused`: WebAssembly with fused multiply-adds, an
 * error where the JavaScript engine has none. `native`: OpenBLAS of the system, an error without.
 * `auto`: the fastest that there is.
 */
export type GemmChoice = "wasm" | "fused" | "native" | "auto";

/** Ways to find a backend, fastest first. */
const finders = { native: openBlas, fused: fusedGemm };

/** The kernels with their products from the backend that was chosen. */
export function withBackend(
  kernels: Kernels,
  memory: WebAssembly.Memory,
  choice: GemmChoice,
): Kernels {
  if (choice === "wasm") return kernels;
  for (const find of choice === "auto" ? Object.values(finders) : [finders[choice]]) {
    const found = find(memory);
    if (found.ok) {
      const { gemm, gemmWorkspace } = found.backend;
      return { ...kernels, gemm, gemmWorkspace };
    }
    if (choice !== "auto") throw found.error;
  }
  return kernels;
}
