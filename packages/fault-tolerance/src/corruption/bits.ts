/** Floating-point formats by their bits, and the classes of bits that a flip can strike. */
import { TriremeError, type Rng } from "@trireme/core";

/** The upper and the lower half of the mantissa are apart: the lower is below any checksum's noise. */
export type BitClass = "sign" | "exponent" | "high-mantissa" | "low-mantissa";

export const bitClasses: readonly BitClass[] = [
  "sign",
  "exponent",
  "high-mantissa",
  "low-mantissa",
];

/** float32 as Float32Array; bfloat16 and float16 as the words of a Uint16Array. */
export type FloatFormat = "float32" | "bfloat16" | "float16";

/** Values of a tensor in one of the formats. */
export type FloatArray = Float32Array | Uint16Array;

interface Layout {
  readonly bits: number;
  readonly mantissa: number;
}

const layouts: Readonly<Record<FloatFormat, Layout>> = {
  float32: { bits: 32, mantissa: 23 },
  bfloat16: { bits: 16, mantissa: 7 },
  float16: { bits: 16, mantissa: 10 },
};

/** First bit of a class and the bit after its last, counted from the least significant. */
export function bitRange(format: FloatFormat, bits: BitClass): readonly [number, number] {
  const { bits: width, mantissa } = layouts[format];
  const half = mantissa >> 1;
  switch (bits) {
    case "sign":
      return [width - 1, width];
    case "exponent":
      return [mantissa, width - 1];
    case "high-mantissa":
      return [half, mantissa];
    case "low-mantissa":
      return [0, half];
  }
}

/** A bit of the class, each as likely. */
export function drawBit(format: FloatFormat, bits: BitClass, rng: Rng): number {
  const [from, to] = bitRange(format, bits);
  return from + rng.integer(to - from);
}

/**
 * The class of a bit.
 * @throws TriremeError "BITS" when the format has no such bit.
 */
export function bitClassOf(format: FloatFormat, bit: number): BitClass {
  for (const bits of bitClasses) {
    const [from, to] = bitRange(format, bits);
    if (Number.isInteger(bit) && bit >= from && bit < to) return bits;
  }
  throw new TriremeError(
    "BITS",
    `${format} has bits 0..${layouts[format].bits - 1}, but not ${bit}`,
  );
}

/** The words of the values, to read and write bits: unsigned, 32 or 16 bits wide, not a copy. */
export function wordsOf(values: FloatArray): Uint32Array | Uint16Array {
  return values instanceof Uint16Array
    ? values
    : new Uint32Array(values.buffer, values.byteOffset, values.length);
}

/**
 * Refuses an array that cannot hold the format.
 * @throws TriremeError "BITS"
 */
export function checkFormat(values: FloatArray, format: FloatFormat): void {
  const wide = format === "float32";
  if (wide === values instanceof Float32Array) return;
  throw new TriremeError(
    "BITS",
    `${format} values are a ${wide ? "Float32Array" : "Uint16Array of words"}, but a ${values.constructor.name} came`,
  );
}

/** Rounds a number to the nearest bfloat16 (ties to even); its word. NaN stays NaN. */
export function toBfloat16(value: number): number {
  scratch[0] = value;
  const word = scratchWord[0]!;
  if (Number.isNaN(value)) return (word >>> 16) | 0x40;
  return ((word + 0x7fff + ((word >>> 16) & 1)) >>> 16) & 0xffff;
}

/** The number of a bfloat16 word. */
export function fromBfloat16(word: number): number {
  scratchWord[0] = word << 16;
  return scratch[0]!;
}

const scratch = new Float32Array(1);
const scratchWord = new Uint32Array(scratch.buffer);
