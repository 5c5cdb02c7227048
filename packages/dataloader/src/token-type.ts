/**
 * Element types of token files, by the codes of Megatron's index files
 * (megatron/core/datasets/indexed_dataset.py, `DType`).
 */

const table = {
  u8: { code: 1, width: 1 },
  i8: { code: 2, width: 1 },
  i16: { code: 3, width: 2 },
  i32: { code: 4, width: 4 },
  i64: { code: 5, width: 8 },
  f64: { code: 6, width: 8 },
  f32: { code: 7, width: 4 },
  u16: { code: 8, width: 2 },
} as const;

/** An element type that a token file may have. */
export type TokenType = keyof typeof table;

const types: readonly TokenType[] = ["u8", "i8", "i16", "i32", "i64", "f64", "f32", "u16"];

/** Bytes of an element. */
export function tokenWidth(type: TokenType): number {
  return table[type].width;
}

/** The code of a type in an index file. */
export function tokenTypeCode(type: TokenType): number {
  return table[type].code;
}

/** The type of a code; undefined where there is none. */
export function tokenTypeOf(code: number): TokenType | undefined {
  return types.find((type) => table[type].code === code);
}

/** The type Megatron writes for a vocabulary: 16 bits below 65,500, else 32. */
export function tokenTypeFor(vocabulary: number): TokenType {
  return vocabulary < 65_500 ? "u16" : "i32";
}

/**
 * Token ids from little-endian bytes, as 32-bit integers into `into`. `bytes` has exactly the bytes of
 * `into.length` elements. Returns the index of the first that is no id (not an integer, negative, or
 * above 2³¹ − 1), -1 where all are.
 */
export function decodeTokens(type: TokenType, bytes: Uint8Array, into: Int32Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (type) {
    case "u8":
      into.set(bytes);
      return -1;
    case "u16":
      if (bytes.byteOffset % 2 === 0 && littleEndian) {
        into.set(new Uint16Array(bytes.buffer, bytes.byteOffset, into.length));
      } else {
        for (let i = 0; i < into.length; i++) into[i] = view.getUint16(2 * i, true);
      }
      return -1;
    case "i8":
      into.set(new Int8Array(bytes.buffer, bytes.byteOffset, into.length));
      return into.findIndex((token) => token < 0);
    case "i16":
      for (let i = 0; i < into.length; i++) into[i] = view.getInt16(2 * i, true);
      return into.findIndex((token) => token < 0);
    case "i32":
      for (let i = 0; i < into.length; i++) into[i] = view.getInt32(4 * i, true);
      return into.findIndex((token) => token < 0);
    case "i64":
      for (let i = 0; i < into.length; i++) {
        const low = view.getInt32(8 * i, true);
        if (low < 0 || view.getInt32(8 * i + 4, true) !== 0) return i;
        into[i] = low;
      }
      return -1;
    case "f32":
    case "f64":
      for (let i = 0; i < into.length; i++) {
        const value = type === "f32" ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true);
        into[i] = value;
        if (into[i] !== value || value < 0) return i;
      }
      return -1;
  }
}

/** Token ids as little-endian bytes of a type that holds them; the caller has checked the range. */
export function encodeTokens(type: TokenType, tokens: ArrayLike<number>): Uint8Array<ArrayBuffer> {
  const { width } = table[type];
  const bytes = new Uint8Array(tokens.length * width);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    switch (type) {
      case "u8":
      case "i8":
        bytes[i] = token;
        break;
      case "u16":
      case "i16":
        view.setUint16(2 * i, token, true);
        break;
      case "i32":
        view.setInt32(4 * i, token, true);
        break;
      case "i64":
        view.setBigInt64(8 * i, BigInt(token), true);
        break;
      case "f32":
        view.setFloat32(4 * i, token, true);
        break;
      case "f64":
        view.setFloat64(8 * i, token, true);
        break;
    }
  }
  return bytes;
}

/** Largest id a type holds exactly. */
export function largestToken(type: TokenType): number {
  const limits: Readonly<Record<TokenType, number>> = {
    u8: 0xff,
    i8: 0x7f,
    i16: 0x7fff,
    u16: 0xffff,
    i32: 0x7fffffff,
    i64: 0x7fffffff,
    f32: 2 ** 24,
    f64: 0x7fffffff,
  };
  return limits[type];
}

const littleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
