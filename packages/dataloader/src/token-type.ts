/**
 * Element types of token files, by the codes of Megatron's index files
 * (megatron/core/datasets/indexed_dataset.py, `DType`). All are little-endian.
 */

/** An element type that a token file may have. */
export type TokenType = "u8" | "i8" | "i16" | "i32" | "i64" | "f64" | "f32" | "u16";

interface Element {
  readonly code: number;
  /** Bytes. */
  readonly width: number;
  /** Largest id that the type holds exactly and that an Int32Array does too. */
  readonly largest: number;
  readonly get: (view: DataView, offset: number) => number;
  readonly set: (view: DataView, offset: number, value: number) => void;
}

const elements: Readonly<Record<TokenType, Element>> = {
  u8: {
    code: 1,
    width: 1,
    largest: 0xff,
    get: (v, at) => v.getUint8(at),
    set: (v, at, x) => v.setUint8(at, x),
  },
  i8: {
    code: 2,
    width: 1,
    largest: 0x7f,
    get: (v, at) => v.getInt8(at),
    set: (v, at, x) => v.setInt8(at, x),
  },
  i16: {
    code: 3,
    width: 2,
    largest: 0x7fff,
    get: (v, at) => v.getInt16(at, true),
    set: (v, at, x) => v.setInt16(at, x, true),
  },
  i32: {
    code: 4,
    width: 4,
    largest: 0x7fffffff,
    get: (v, at) => v.getInt32(at, true),
    set: (v, at, x) => v.setInt32(at, x, true),
  },
  i64: {
    code: 5,
    width: 8,
    largest: 0x7fffffff,
    get: (v, at) => Number(v.getBigInt64(at, true)),
    set: (v, at, x) => v.setBigInt64(at, BigInt(x), true),
  },
  f64: {
    code: 6,
    width: 8,
    largest: 0x7fffffff,
    get: (v, at) => v.getFloat64(at, true),
    set: (v, at, x) => v.setFloat64(at, x, true),
  },
  f32: {
    code: 7,
    width: 4,
    largest: 2 ** 24,
    get: (v, at) => v.getFloat32(at, true),
    set: (v, at, x) => v.setFloat32(at, x, true),
  },
  u16: {
    code: 8,
    width: 2,
    largest: 0xffff,
    get: (v, at) => v.getUint16(at, true),
    set: (v, at, x) => v.setUint16(at, x, true),
  },
};

const types: readonly TokenType[] = ["u8", "i8", "i16", "i32", "i64", "f64", "f32", "u16"];

/** Bytes of an element. */
export function tokenWidth(type: TokenType): number {
  return elements[type].width;
}

/** Largest id that a type holds exactly, at most 2³¹ − 1. */
export function largestToken(type: TokenType): number {
  return elements[type].largest;
}

/** The code of a type in an index file. */
export function tokenTypeCode(type: TokenType): number {
  return elements[type].code;
}

/** The type of a code; undefined where there is none. */
export function tokenTypeOf(code: number): TokenType | undefined {
  return types.find((type) => elements[type].code === code);
}

/** The type Megatron writes for a vocabulary: 16 bits below 65,500, else 32. */
export function tokenTypeFor(vocabulary: number): TokenType {
  return vocabulary < 65_500 ? "u16" : "i32";
}

/**
 * Token ids from bytes into `into`; `bytes` has exactly the bytes of `into.length` elements. Returns
 * the index of the first that is no id (no integer in 0..2³¹ − 1), -1 where all are.
 */
export function decodeTokens(type: TokenType, bytes: Uint8Array, into: Int32Array): number {
  if (type === "u16" && littleEndian && bytes.byteOffset % 2 === 0) {
    into.set(new Uint16Array(bytes.buffer, bytes.byteOffset, into.length));
    return -1;
  }
  const { width, get } = elements[type];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < into.length; i++) {
    const value = get(view, i * width);
    into[i] = value;
    if (into[i] !== value || value < 0) return i;
  }
  return -1;
}

/** Token ids as bytes of a type that holds them; the caller has checked that it does. */
export function encodeTokens(type: TokenType, tokens: ArrayLike<number>): Uint8Array<ArrayBuffer> {
  const { width, set } = elements[type];
  const bytes = new Uint8Array(tokens.length * width);
  if (type === "u16" && littleEndian) {
    new Uint16Array(bytes.buffer).set(tokens);
    return bytes;
  }
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < tokens.length; i++) set(view, i * width, tokens[i]!);
  return bytes;
}

const littleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
