/** Compiles assembly/index.ts; the module's bytes. */
export function compileKernels(): Promise<Uint8Array>;
/** The text of src/kernels/module.ts for these bytes. */
export function moduleSource(binary: Uint8Array): string;
