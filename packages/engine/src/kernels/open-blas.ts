/**
 * OpenBLAS of the system through koffi, on one thread a rank: the products are several times those of
 * 128-bit WebAssembly. koffi and the library are optional; neither is needed for anything.
 */
import { createRequire } from "node:module";
import { TriremeError } from "@trireme/core";
import type { FoundBackend } from "./gemm-backend.ts";

/** Names that systems give the library. */
const libraries = ["libopenblas.so.0", "libopenblas.so", "libopenblas.dylib", "libopenblas.dll"];

/** What of koffi is used; its own types need a DOM. */
interface Koffi {
  load(path: string): { func(declaration: string): (...args: unknown[]) => unknown };
  address(buffer: ArrayBufferView): bigint;
}

/** CblasRowMajor, CblasNoTrans and CblasTrans. */
const [rowMajor, asIs, turned] = [101, 111, 112];

/** The backend over a rank's memory. */
export function openBlas(memory: WebAssembly.Memory): FoundBackend {
  let koffi: Koffi;
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the module has these functions
    koffi = createRequire(import.meta.url)("koffi") as Koffi;
  } catch (cause) {
    return missing("koffi is not installed; npm install koffi@3.3.4", cause);
  }
  const library = loadFirst(koffi);
  if (library === undefined) {
    return missing(
      `no OpenBLAS among ${libraries.join(", ")}; on Debian, apt install libopenblas0-pthread`,
    );
  }
  library.func("void openblas_set_num_threads(int)")(1);
  const sgemm = library.func(
    "void cblas_sgemm(int, int, int, int, int, int, float, void*, int, void*, int, float, void*, int)",
  );
  // The memory is reserved to its full size at once: it stays where it is when it grows.
  const base = koffi.address(new Uint8Array(memory.buffer));
  const at = (pointer: number): bigint => base + BigInt(pointer);
  return {
    ok: true,
    backend: {
      name: "OpenBLAS",
      gemm: (transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) => {
        const [ta, tb] = [transA ? turned : asIs, transB ? turned : asIs];
        sgemm(rowMajor, ta, tb, m, n, k, alpha, at(a), lda, at(b), ldb, beta, at(c), ldc);
      },
      gemmWorkspace: () => 0,
    },
  };
}

function loadFirst(koffi: Koffi): ReturnType<Koffi["load"]> | undefined {
  for (const name of libraries) {
    try {
      return koffi.load(name);
    } catch {
      // The next name.
    }
  }
  return undefined;
}

function missing(why: string, cause?: unknown): FoundBackend {
  return {
    ok: false,
    error: new TriremeError("NATIVE_GEMM", `native products: ${why}`, { cause }),
  };
}
