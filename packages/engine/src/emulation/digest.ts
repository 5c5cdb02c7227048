import type { Elements } from "@trireme/collectives";

/** A 32-bit digest of numbers, bit for bit (FNV-1a over whole elements); of nothing, its offset basis. */
export function digest(data: Elements | undefined): number {
  let hash = 0x811c9dc5;
  if (data === undefined) return hash | 0;
  const bits =
    data instanceof Uint16Array ? data : new Int32Array(data.buffer, data.byteOffset, data.length);
  for (const word of bits) hash = Math.imul(hash ^ word, 0x01000193);
  return hash | 0;
}
