/**
 * FP8 E4M3 (Micikevicius et al., FP8 formats for deep learning, 2022): 4 bits of exponent (bias 7),
 * 3 of mantissa, no infinities, largest 448, smallest 2^-9. Payloads carry f32 scales: per token on
 * the way forward, per channel and group of 128 tokens on the way back (MegaScale-MoE, EuroSys 2026,
 * section 5).
 */
import { TriremeError } from "@trireme/core";

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

/** Which scale an element has. */
function scaleIndex(
  { channels, scaling, group }: Pick<Fp8Payload, "channels" | "scaling" | "group">,
  token: number,
  channel: number,
): number {
  return scaling === "per-token" ? token : Math.floor(token / group) * channels + channel;
}

/** Scales each token, or each channel's group, so that its largest value is 448, and rounds. */
export function quantize(data: Float32Array, options: QuantizeOptions): Fp8Payload {
  const { tokens, channels, scaling, group = 128 } = options;
  if (data.length !== tokens * channels || !Number.isInteger(group) || group < 1) {
    throw new TriremeError(
      "FP8",
      `${data.length} values for ${tokens} tokens x ${channels} channels in groups of ${group}; must be ${tokens * channels} and a positive group`,
    );
  }
  const shape = { channels, scaling, group };
  const scales = new Float32Array(
    scaling === "per-token" ? tokens : Math.ceil(tokens / group) * channels,
  );
  for (let i = 0; i < data.length; i++) {
    const at = scaleIndex(shape, Math.floor(i / channels), i % channels);
    const magnitude = Math.abs(data[i]!);
    if (!(magnitude <= scales[at]!)) scales[at] = magnitude;
  }
  // A scale below the normal range of f32 would itself be rough.
  for (let i = 0; i < scales.length; i++) scales[i] = Math.max(scales[i]! / e4m3Max, 2 ** -126);
  const bytes = new Uint8Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const at = scaleIndex(shape, Math.floor(i / channels), i % channels);
    bytes[i] = toE4m3(data[i]! / scales[at]!);
  }
  return { tokens, channels, data: bytes, scales, scaling, group };
}

/** The values of a payload. */
export function dequantize(payload: Fp8Payload): Float32Array {
  const { channels, data, scales } = payload;
  const out = new Float32Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const at = scaleIndex(payload, Math.floor(i / channels), i % channels);
    out[i] = fromE4m3(data[i]!) * scales[at]!;
  }
  return out;
}
