/** WebAssembly modules kept as base64; they compile at once, so no caller has to wait. */

interface WebAssemblyHost {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: never };
}

const host = (): WebAssemblyHost => Reflect.get(globalThis, "WebAssembly");

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function decodeBase64(text: string): Uint8Array {
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

/** A compiled module. */
export function compile(base64: string): object {
  return new (host().Module)(decodeBase64(base64));
}

/** The exports of a new instance. */
export function instantiate<Exports>(module: object, imports: object): Exports {
  return new (host().Instance)(module, imports).exports;
}
