/** How bytes get from a tensor into the arena and back. */

/** Copies `source` to `target` from byte `at` on; either may lie in shared memory. */
export type CopyBytes = (target: Uint8Array, at: number, source: Uint8Array) => void;

/** The copy that every host has. */
export const setBytes: CopyBytes = (target, at, source) => target.set(source, at);
