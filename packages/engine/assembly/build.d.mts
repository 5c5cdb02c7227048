/** A module to compile: its entry, features of WebAssembly, and the file and name it is checked in under. */
export interface ModuleSource {
  readonly entry: string;
  readonly features: string;
  readonly file: string;
  readonly name: string;
}
/** All kernels, and the products with fused multiply-adds. */
export const modules: { readonly kernels: ModuleSource; readonly fused: ModuleSource };
/** Compiles from the assembly folder; the module's bytes. */
export function compileModule(source: ModuleSource): Promise<Uint8Array>;
/** The text of the file that holds these bytes. */
export function moduleSource(binary: Uint8Array, source: ModuleSource): string;
