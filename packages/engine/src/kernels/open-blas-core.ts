/**
 * Which of its kernels OpenBLAS is to take. A library older than the processor does not know it and
 * falls back to 128-bit kernels, no faster than WebAssembly's: it then needs to be told.
 */
import { readFileSync } from "node:fs";

/** The newest kernels that a processor with these flags has. */
export function openBlasCore(cpuinfo: string): string | undefined {
  const flags = new Set(/^flags\s*:\s*(.*)$/m.exec(cpuinfo)?.[1]?.split(" "));
  if (["avx512f", "avx512bw", "avx512dq", "avx512vl"].every((flag) => flags.has(flag))) {
    return "SkylakeX";
  }
  return flags.has("avx2") && flags.has("fma") ? "Haswell" : undefined;
}

/**
 * Tells it, where nobody has, by its environment variable; before threads load the library, because
 * only the main thread's environment is the process's.
 */
export function chooseOpenBlasCore(): void {
  if (process.platform !== "linux" || process.env["OPENBLAS_CORETYPE"] !== undefined) return;
  const core = openBlasCore(readFileSync("/proc/cpuinfo", "utf8"));
  if (core !== undefined) process.env["OPENBLAS_CORETYPE"] = core;
}
