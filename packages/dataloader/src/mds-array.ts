/**
 * NumPy arrays in MDS columns. Type and shape are part of the encoding's name where they are the same
 * for all samples (`ndarray:float32:2,3`), else they precede the values: a byte for the type, a byte
 * with the number of dims and the width of the sizes that follow.
 */
import { TriremeError } from "@trireme/core";
import type { MdsCodec } from "./mds-encoding.ts";

/** The element types of arrays. */
export type MdsElement =
  | "uint8"
  | "int8"
  | "uint16"
  | "int16"
  | "float16"
  | "uint32"
  | "int32"
  | "float32"
  | "uint64"
  | "int64"
  | "float64";

/** The elements of an array; of type float16, the bits of each half. */
export type MdsElements =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | BigUint64Array
  | BigInt64Array
  | Float64Array;

/** An array of a column. */
export interface MdsArray {
  readonly type: MdsElement;
  /** Sizes of the dims, each at least 1. */
  readonly shape: readonly number[];
  /** Row-major. */
  readonly data: MdsElements;
}

interface ElementClass {
  readonly code: number;
  readonly View: {
    readonly BYTES_PER_ELEMENT: number;
    new (buffer: ArrayBuffer): MdsElements;
  };
}

const classes: Readonly<Record<MdsElement, ElementClass>> = {
  uint8: { code: 8, View: Uint8Array },
  int8: { code: 9, View: Int8Array },
  uint16: { code: 16, View: Uint16Array },
  int16: { code: 17, View: Int16Array },
  float16: { code: 18, View: Uint16Array },
  uint32: { code: 32, View: Uint32Array },
  int32: { code: 33, View: Int32Array },
  float32: { code: 34, View: Float32Array },
  uint64: { code: 64, View: BigUint64Array },
  int64: { code: 65, View: BigInt64Array },
  float64: { code: 66, View: Float64Array },
};

/** Whether a value is an array of a column. */
export function isMdsArray(value: unknown): value is MdsArray {
  return (
    typeof value === "object" && value !== null && "data" in value && ArrayBuffer.isView(value.data)
  );
}

/** The codec of `ndarray` with the details of its name: an element type, then a shape. */
export function arrayCodec(details: readonly string[]): MdsCodec {
  const [typeText, shapeText] = details;
  const type = typeText === undefined || typeText === "" ? undefined : elementOf(typeText);
  const shape = shapeText?.split(",").map(Number);
  if (shape?.some((size) => !Number.isSafeInteger(size) || size < 1) === true) {
    throw new TriremeError("FORMAT", `array shape ${shapeText}: sizes are positive integers`);
  }
  const fixed =
    type === undefined || shape === undefined ? undefined : product(shape) * widthOf(type);
  return {
    size: fixed,
    encode(value) {
      if (!isMdsArray(value))
        throw new TriremeError("FORMAT", "an array column needs { type, shape, data }");
      check(value, type, shape);
      const data = new Uint8Array(value.data.buffer, value.data.byteOffset, value.data.byteLength);
      const head = [
        ...(type === undefined ? [classes[value.type].code] : []),
        ...(shape === undefined ? encodeShape(value.shape) : []),
      ];
      const bytes = new Uint8Array(head.length + data.length);
      bytes.set(head);
      bytes.set(data, head.length);
      return bytes;
    },
    decode(bytes) {
      let at = 0;
      const element = type ?? elementOfCode(bytes[at++]);
      let sizes = shape;
      if (sizes === undefined) {
        const { shape: read, length } = decodeShape(bytes.subarray(at));
        sizes = read;
        at += length;
      }
      const expected = product(sizes) * widthOf(element);
      if (bytes.length - at !== expected) {
        throw new TriremeError(
          "FORMAT",
          `an array of ${element} [${sizes.join(", ")}] needs ${expected} bytes; it has ${bytes.length - at}`,
        );
      }
      // A copy: it is aligned, and outlives the shard's buffer.
      return {
        type: element,
        shape: sizes,
        data: new classes[element].View(bytes.slice(at).buffer),
      };
    },
  };
}

function check(
  value: MdsArray,
  type: MdsElement | undefined,
  shape: readonly number[] | undefined,
): void {
  const { shape: own, data } = value;
  const complain = (reason: string): never => {
    throw new TriremeError("FORMAT", `array of ${value.type} [${own.join(", ")}]: ${reason}`);
  };
  if (type !== undefined && value.type !== type) complain(`the column holds ${type}`);
  if (shape !== undefined && shape.join() !== own.join())
    complain(`the column holds [${shape.join(", ")}]`);
  if (own.length === 0 || own.length > 63) complain("it must have 1 to 63 dims");
  if (own.some((size) => !Number.isSafeInteger(size) || size < 1))
    complain("sizes are positive integers");
  if (data.length !== product(own)) complain(`it has ${data.length} elements`);
  if (!(data instanceof classes[value.type].View)) complain("its data is an array of another type");
}

function encodeShape(shape: readonly number[]): number[] {
  const largest = Math.max(...shape);
  const power = largest < 2 ** 8 ? 0 : largest < 2 ** 16 ? 1 : largest < 2 ** 32 ? 2 : 3;
  const bytes = [(shape.length << 2) | power];
  for (const size of shape) {
    for (let k = 0; k < 2 ** power; k++) bytes.push(Math.floor(size / 256 ** k) % 256);
  }
  return bytes;
}

function decodeShape(bytes: Uint8Array): { shape: number[]; length: number } {
  const head = bytes[0] ?? 0;
  const width = 2 ** (head & 3);
  const length = 1 + (head >> 2) * width;
  if (head >> 2 === 0 || bytes.length < length)
    throw new TriremeError("FORMAT", "an array's shape is cut short");
  const shape = Array.from({ length: head >> 2 }, (_, dim) => {
    let size = 0;
    for (let k = width - 1; k >= 0; k--) size = size * 256 + bytes[1 + dim * width + k]!;
    return size;
  });
  return { shape, length };
}

function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

function widthOf(type: MdsElement): number {
  return classes[type].View.BYTES_PER_ELEMENT;
}

function elementOf(name: string): MdsElement {
  if (isElement(name)) return name;
  throw new TriremeError("FORMAT", `array element type ${JSON.stringify(name)} is not known`);
}

function elementOfCode(code: number | undefined): MdsElement {
  const name = Object.keys(classes)
    .filter(isElement)
    .find((type) => classes[type].code === code);
  if (name === undefined)
    throw new TriremeError("FORMAT", `array element type ${code} is not known`);
  return name;
}

function isElement(name: string): name is MdsElement {
  return Object.hasOwn(classes, name);
}
