/** Whether the files of a checkpoint are the ones that were written, byte for byte, by its marker. */
import { crc32 } from "./crc32.ts";
import { parseMarker } from "./marker.ts";

/** The answer, with the first defect found. */
export type Verification = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/**
 * Compares files that were read with what the marker's text says of them: all there, of that size and,
 * where it lists one, of that checksum. A checkpoint that fails is passed over for the next of
 * `completeCheckpoints`. `checksum` may be a native CRC-32; the default is this package's.
 */
export function verifyFiles(
  marker: string,
  files: readonly { readonly name: string; readonly bytes: Uint8Array }[],
  checksum: (bytes: Uint8Array) => number = crc32,
): Verification {
  const said = parseMarker(marker);
  if (said === undefined)
    return { ok: false, reason: "its marker is cut short or of no version known" };
  const read = new Map(files.map(({ name, bytes }) => [name, bytes]));
  for (const { name, size, crc32: wanted } of said.files) {
    const bytes = read.get(name);
    if (bytes === undefined) return { ok: false, reason: `${name} is missing` };
    if (bytes.byteLength !== size) {
      return { ok: false, reason: `${name} has ${bytes.byteLength} bytes; ${size} were written` };
    }
    if (wanted === undefined) continue;
    const found = checksum(bytes);
    if (found !== wanted) {
      const [is, was] = [found, wanted].map((crc) => crc.toString(16).padStart(8, "0"));
      return { ok: false, reason: `${name} has CRC-32 ${is}; ${was} was written` };
    }
  }
  return { ok: true };
}
