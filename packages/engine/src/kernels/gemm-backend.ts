/** Who makes the matrix products: the WebAssembly kernels, or another library on the same memory. */
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

/** `wasm`: the kernels. `native`: OpenBLAS of the system, an error without. `auto`: it where it is. */
export type GemmChoice = "wasm" | "native" | "auto";

/** The kernels with their products from the backend that was chosen. */
export function withBackend(
  kernels: Kernels,
  memory: WebAssembly.Memory,
  choice: GemmChoice,
): Kernels {
  if (choice === "wasm") return kernels;
  const backend = openBlas(memory);
  if (!backend.ok) {
    if (choice === "auto") return kernels;
    throw backend.error;
  }
  const { gemm, gemmWorkspace } = backend.backend;
  return { ...kernels, gemm, gemmWorkspace };
}
