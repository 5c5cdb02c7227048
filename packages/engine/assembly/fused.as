/**
 * Matrix multiplication by itself, to be compiled with relaxed SIMD (WebAssembly's proposal of that
 * name): its multiply-adds are one instruction where the processor has one.
 */
export { gemm, gemmWorkspace } from "./gemm";
