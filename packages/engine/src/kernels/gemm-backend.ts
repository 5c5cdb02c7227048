/** Who makes the matrix products: the WebAssembly kernels, or another library on the same memory. */
import type { TriremeError } from "@trireme/core";
import type { KernelChoice } from "@trireme/run";
import { fusedKernels } from "./fused-kernels.ts";
import type { Kernels } from "./kernels.ts";
import { openBlas } from "./open-blas.ts";

/**
 * What a backend offers: products over a rank's memory, as `Kernels` says, and whatever else it has.
 * The rest stays with the kernels, so that a backend need not know the whole model.
 */
type GemmBackend = Pick<Kernels, "gemm" | "gemmWorkspace"> &
  Partial<Kernels> & {
    /** What errors and logs call it. */
    readonly name: string;
  };

/** A backend, or why there is none. */
export type FoundBackend =
  | { readonly ok: true; readonly backend: GemmBackend }
  | { readonly ok: false; readonly error: TriremeError };

/** Ways to find a backend; a later one's kernels replace an earlier one's. */
const finders = { fused: fusedKernels, native: openBlas };

/** The kernels with those of the backends up to the one that was chosen. */
export function withBackend(
  kernels: Kernels,
  memory: WebAssembly.Memory,
  choice: KernelChoice,
): Kernels {
  if (choice === "wasm") return kernels;
  const chosen = { ...kernels };
  for (const [name, find] of Object.entries(finders)) {
    const found = find(memory);
    if (found.ok) {
      const { name: _, ...offered } = found.backend;
      Object.assign(chosen, offered);
    } else if (name === choice) throw found.error;
    if (name === choice) break;
  }
  return chosen;
}
