/**
 * FP8 E4M3 (Micikevicius et al., FP8 formats for deep learning, 2022): 4 bits of exponent (bias 7),
 * 3 of mantissa, no infinities, largest 448, smallest 2^-9. Payloads carry f32 scales: per token on
 * the way forward, per channel and group of 128 tokens on the way back (MegaScale-MoE, EuroSys 2026,
 * section 5).
 */
import { TriremeError } from "@trireme/core";
import { areas, blockElements, compressKernel } from "./compress-kernel.ts";

/** The largest E4M3 value. */
export const e4m3Max = 448;

/** Rounds to E4M3, ties to even; what is larger saturates, NaN stays NaN (0x7f). */
export function toE4m3(value: number): number {
  if (Number.isNaN(value)) return 0x7f;
  const sign = value < 0 || Object.is(value, -0) ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(value), e4m3Max);
  // Below 2^-6 values are subnormal: multiples of 2^-9.
  const exponent = Math.max(-6, Math.floor(Math.log2(magnitude || 2 ** -9)));
  let steps = tiesToEven(magnitude / 2 ** (exponent - 3));
  let field = exponent + 7;
  if (steps >= 16) {
    steps /= 2;
    field++;
  }
  if (steps < 8) return sign | steps;
  return sign | Math.min((field << 3) | (steps - 8), 0x7e);
}

/** The value of an E4M3 byte. */
export function fromE4m3(byte: number): number {
  const sign = byte & 0x80 ? -1 : 1;
  const exponent = (byte >> 3) & 15;
  const mantissa = byte & 7;
  if (exponent === 15 && mantissa === 7) return Number.NaN;
  return exponent === 0
    ? sign * mantissa * 2 ** -9
    : sign * (1 + mantissa / 8) * 2 ** (exponent - 7);
}

function tiesToEven(x: number): number {
  const low = Math.floor(x);
  const rest = x - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
}

/** A matrix [tokens, channels] in FP8 with its scales: value = byte x scale. */
export interface Fp8Payload {
  readonly tokens: number;
  readonly channels: number;
  readonly data: Uint8Array;
  /** Per token [tokens], or per channel in groups of tokens [groups, channels]. */
  readonly scales: Float32Array;
  readonly scaling: "per-token" | "per-channel";
  /** Tokens of a group, of per-channel scales. */
  readonly group: number;
}

/** Options of `quantize`. */
export interface QuantizeOptions {
  readonly tokens: number;
  readonly channels: number;
  readonly scaling: "per-token" | "per-channel";
  /** Tokens that share a channel's scale. Default 128. */
  readonly group?: number;
}

/** Rows, or a part of one row, that the kernel takes at once; they lie one after the other. */
interface Block {
  /** First element in the matrix, and in the scales; elements of scales. */
  readonly start: number;
  readonly rows: number;
  readonly columns: number;
  readonly scale: number;
  readonly scales: number;
}

/** The blocks of a matrix in order; with scales per channel, none reaches over two groups. */
function blocksOf({ tokens, channels, scaling, group }: Shape): Block[] {
  const perChannel = scaling === "per-channel";
  const blocks: Block[] = [];
  const most = Math.max(1, Math.floor(blockElements / Math.max(1, channels)));
  for (let token = 0, rows = 0; token < tokens; token += rows) {
    rows = Math.min(most, tokens - token, perChannel ? group - (token % group) : Infinity);
    for (let column = 0; column < channels; column += blockElements) {
      const columns = Math.min(blockElements, channels - column);
      const scale = perChannel ? Math.floor(token / group) * channels + column : token;
      const scales = perChannel ? columns : rows;
      blocks.push({ start: token * channels + column, rows, columns, scale, scales });
    }
  }
  return blocks;
}

type Shape = Omit<Fp8Payload, "data" | "scales">;

/** Scales that a matrix has. */
function scalesOf({ tokens, channels, scaling, group }: Shape): number {
  return scaling === "per-channel" ? Math.ceil(tokens / group) * channels : tokens;
}

function checkShape(
  values: number,
  { tokens, channels, group }: Pick<Shape, "tokens" | "channels" | "group">,
): void {
  const whole = [tokens, channels].every((count) => Number.isSafeInteger(count) && count >= 0);
  if (whole && values === tokens * channels && Number.isInteger(group) && group >= 1) return;
  const rule = whole ? `must be ${tokens * channels} and a positive group` : "use whole numbers";
  throw new TriremeError(
    "FP8",
    `${values} values for ${tokens} tokens x ${channels} channels in groups of ${group}; ${rule}`,
  );
}

/** Scales each token, or each channel's group, so that its largest value is 448, and rounds. */
export function quantize(data: Float32Array, options: QuantizeOptions): Fp8Payload {
  const { tokens, channels, scaling, group = 128 } = options;
  checkShape(data.length, { tokens, channels, group });
  const each = scaling === "per-channel";
  const blocks = blocksOf({ tokens, channels, scaling, group });
  const scales = new Float32Array(scalesOf({ tokens, channels, scaling, group }));
  const kernel = compressKernel();
  const { buffer } = kernel.memory;
  const input = new Float32Array(buffer, areas.input, blockElements);
  const held = new Float32Array(buffer, areas.scales, blockElements);
  for (const { start, rows, columns, scale, scales: count } of blocks) {
    input.set(data.subarray(start, start + rows * columns));
    held.set(scales.subarray(scale, scale + count));
    for (let row = 0; row < rows; row++) {
      const from = areas.input + row * columns * 4;
      if (each) kernel.largestEach(areas.scales, from, columns);
      else held[row] = kernel.largest(from, columns, held[row]!);
    }
    scales.set(held.subarray(0, count), scale);
  }
  // A scale below the normal range of f32 would itself be rough.
  for (let i = 0; i < scales.length; i++) scales[i] = Math.max(scales[i]! / e4m3Max, 2 ** -126);
  const bytes = new Uint8Array(data.length);
  const output = new Uint8Array(buffer, areas.output, blockElements);
  for (const { start, rows, columns, scale, scales: count } of blocks) {
    input.set(data.subarray(start, start + rows * columns));
    held.set(scales.subarray(scale, scale + count));
    for (let row = 0; row < rows; row++) {
      const at = row * columns;
      const by = areas.scales + (each ? 0 : row * 4);
      kernel.quantize(areas.output + at, areas.input + at * 4, by, columns, each);
    }
    bytes.set(output.subarray(0, rows * columns), start);
  }
  return { tokens, channels, data: bytes, scales, scaling, group };
}

/** The values of a payload. Throws `FP8` where its bytes or scales are not those of its shape. */
export function dequantize(payload: Fp8Payload): Float32Array {
  const { data, scales, scaling } = payload;
  checkShape(data.length, payload);
  if (scales.length !== scalesOf(payload)) {
    throw new TriremeError(
      "FP8",
      `${scales.length} scales of ${payload.tokens} tokens x ${payload.channels} channels ${scaling}; must be ${scalesOf(payload)}`,
    );
  }
  const each = scaling === "per-channel";
  const out = new Float32Array(data.length);
  const kernel = compressKernel();
  const { buffer } = kernel.memory;
  const input = new Uint8Array(buffer, areas.input, blockElements);
  const held = new Float32Array(buffer, areas.scales, blockElements);
  const output = new Float32Array(buffer, areas.output, blockElements);
  for (const { start, rows, columns, scale, scales: count } of blocksOf(payload)) {
    input.set(data.subarray(start, start + rows * columns));
    held.set(scales.subarray(scale, scale + count));
    for (let row = 0; row < rows; row++) {
      const at = row * columns;
      const by = areas.scales + (each ? 0 : row * 4);
      kernel.dequantize(areas.output + at * 4, areas.input + at, by, columns, each);
    }
    out.set(output.subarray(0, rows * columns), start);
  }
  return out;
}

/** Adds f32 values into `sum`, element by element. */
export function addInto(sum: Float32Array, values: Float32Array): void {
  const kernel = compressKernel();
  const input = new Float32Array(kernel.memory.buffer, areas.input, blockElements);
  const output = new Float32Array(kernel.memory.buffer, areas.output, blockElements);
  for (let at = 0; at < sum.length; at += blockElements) {
    const n = Math.min(blockElements, sum.length - at);
    input.set(values.subarray(at, at + n));
    output.set(sum.subarray(at, at + n));
    kernel.addF32(areas.output, areas.input, n);
    sum.set(output.subarray(0, n), at);
  }
}
