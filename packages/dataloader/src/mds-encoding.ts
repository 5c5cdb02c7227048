/**
 * How a column of an MDS shard holds a value. Source: mosaicml/streaming,
 * streaming/base/format/mds/encodings.py. Pickled columns are refused: reading one runs its code.
 */
import { TriremeError, nearestName } from "@trireme/core";
import { firstInvalidUtf8 } from "./utf8.ts";
import { type MdsArray, arrayCodec, isMdsArray } from "./mds-array.ts";
import { type JsonValue, pythonFloat, pythonJson } from "./python-json.ts";

/**
 * A value of a column. Integers of 64 bits and more come as numbers while those are exact, else as
 * bigints; images (`jpeg`, `png`, `pil`) and `bytes` as the bytes stored.
 */
export type MdsValue = string | number | bigint | Uint8Array | MdsArray | JsonValue;

/** Both directions of one encoding. */
export interface MdsCodec {
  /** Bytes of every value; undefined where they vary. */
  readonly size: number | undefined;
  readonly encode: (value: MdsValue) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => MdsValue;
}

const scalarBytes = {
  uint8: 1,
  int8: 1,
  uint16: 2,
  int16: 2,
  uint32: 4,
  int32: 4,
  uint64: 8,
  int64: 8,
  int: 8,
  float32: 4,
  float64: 8,
} as const;

type Scalar = keyof typeof scalarBytes;

const variable: Readonly<Record<string, MdsCodec>> = {
  bytes: bytesCodec(),
  jpeg: bytesCodec(),
  png: bytesCodec(),
  pil: bytesCodec(),
  str: textCodec(
    (value) => (typeof value === "string" ? value : refuse("str", value)),
    (text) => text,
  ),
  json: textCodec(
    (value) =>
      value instanceof Uint8Array || isMdsArray(value)
        ? refuse("json", "bytes")
        : pythonJson(value),
    parseJson,
  ),
  str_int: textCodec(
    (value) => String(integer("str_int", value)),
    (text) =>
      /^[+-]?\d+$/.test(text) ? exact(BigInt(text)) : unreadable("an integer", "str_int", text),
  ),
  str_float: textCodec(
    (value) => (typeof value === "number" ? floatText(value) : refuse("str_float", value)),
    floatOf,
  ),
  str_decimal: textCodec(
    (value) => (typeof value === "string" ? value : refuse("str_decimal", value)),
    (text) => text,
  ),
};

/** The codec of an encoding by name: `str`, `int32`, `ndarray:uint16`, `ndarray:float32:2,3`, … */
export function mdsCodec(encoding: string): MdsCodec {
  const [name = "", ...details] = encoding.split(":");
  if (name === "ndarray") return arrayCodec(details);
  // A quality or the like says how a writer made the bytes; a reader needs no more than the name.
  const codec = Object.hasOwn(variable, name) ? variable[name] : undefined;
  if (codec !== undefined) return codec;
  if (isScalar(name)) return scalarCodec(name);
  if (name === "pkl") {
    throw new TriremeError(
      "FORMAT",
      "column encoding pkl is not read: unpickling runs the code in the file; write json",
    );
  }
  const near = nearestName(name, [
    ...Object.keys(variable),
    ...Object.keys(scalarBytes),
    "ndarray",
  ]);
  throw new TriremeError(
    "FORMAT",
    `column encoding ${JSON.stringify(encoding)} is not known` +
      (near === undefined ? "" : `; did you mean ${near}?`),
  );
}

function isScalar(name: string): name is Scalar {
  return Object.hasOwn(scalarBytes, name);
}

function bytesCodec(): MdsCodec {
  return {
    size: undefined,
    encode: (value) => (value instanceof Uint8Array ? value : refuse("bytes", value)),
    decode: (bytes) => bytes,
  };
}

function textCodec(
  print: (value: MdsValue) => string,
  parse: (text: string) => MdsValue,
): MdsCodec {
  return {
    size: undefined,
    encode: (value) => new TextEncoder().encode(print(value)),
    decode(bytes) {
      const at = firstInvalidUtf8(bytes);
      if (at !== -1) throw new TriremeError("FORMAT", `not UTF-8 from its byte ${at} on`);
      return parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
    },
  };
}

function scalarCodec(name: Scalar): MdsCodec {
  const size = scalarBytes[name];
  const viewOf = (bytes: Uint8Array): DataView =>
    new DataView(bytes.buffer, bytes.byteOffset, size);
  if (name === "float32" || name === "float64") {
    return {
      size,
      encode(value) {
        if (typeof value !== "number") return refuse(name, value);
        return new Uint8Array((name === "float32" ? Float32Array : Float64Array).of(value).buffer);
      },
      decode: (bytes) =>
        name === "float32" ? viewOf(bytes).getFloat32(0, true) : viewOf(bytes).getFloat64(0, true),
    };
  }
  const signed = !name.startsWith("u");
  const bits = 8 * size;
  return {
    size,
    encode(value) {
      const whole = integer(name, value);
      if ((signed ? BigInt.asIntN(bits, whole) : BigInt.asUintN(bits, whole)) !== whole) {
        return refuse(name, value);
      }
      const wide = new Uint8Array(BigInt64Array.of(BigInt.asIntN(64, whole)).buffer);
      return wide.slice(0, size);
    },
    decode(bytes) {
      const wide = new Uint8Array(8);
      wide.set(bytes.subarray(0, size));
      const raw = new DataView(wide.buffer).getBigUint64(0, true);
      return exact(signed ? BigInt.asIntN(bits, raw) : raw);
    },
  };
}

function integer(encoding: string, value: MdsValue): bigint {
  if (typeof value === "bigint") return value;
  return Number.isSafeInteger(value) ? BigInt(Number(value)) : refuse(encoding, value);
}

/** A number where that is exact, else the bigint. */
function exact(value: bigint): number | bigint {
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}

function parseJson(text: string): MdsValue {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch (cause) {
    throw new TriremeError("FORMAT", "not JSON", { cause });
  }
}

function refuse(encoding: string, value: unknown): never {
  const shown =
    typeof value === "bigint" ? `${value}` : (JSON.stringify(value)?.slice(0, 40) ?? typeof value);
  throw new TriremeError("FORMAT", `${shown} is no value for a column of encoding ${encoding}`);
}

/** A float as Python's `str` has it: not as its `json`, which writes NaN and Infinity. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return pythonFloat(value);
}

/** What Python's `float` reads: digits, or the words for what is none, in letters of either case. */
function floatOf(text: string): number {
  const [, sign = "", word] = /^([+-]?)(nan|inf|infinity)$/i.exec(text) ?? [];
  if (word?.toLowerCase() === "nan") return NaN;
  if (word !== undefined) return sign === "-" ? -Infinity : Infinity;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text))
    return unreadable("a number", "str_float", text);
  return Number(text);
}

function unreadable(what: string, encoding: string, text: string): never {
  throw new TriremeError(
    "FORMAT",
    `${JSON.stringify(text.slice(0, 40))} is not ${what}, as a column of encoding ${encoding} has it`,
  );
}
