/** WebAssembly modules kept as base64; they compile at once, so no caller has to wait. */

/** A host's `WebAssembly`, as far as this package uses it, for modules with these exports. */
export interface WebAssemblyHost<Exports> {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Exports };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The bytes of a base64 text. */
export function decodeBase64(text: string): Uint8Array {
  const digits = text.replace(/=+$/, "");
  const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
  let [bits, held, at] = [0, 0, 0];
  for (const digit of digits) {
    held = ((held << 6) | alphabet.indexOf(digit)) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = held >>> bits;
    }
  }
  return bytes;
}
