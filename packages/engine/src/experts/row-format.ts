/**
 * Rows of tokens in fewer bits than float32, as they travel between ranks: BF16, or E4M3 with a scale
 * for each token on the way forward and for each channel of up to 128 tokens on the way back
 * (MegaScale-MoE, EuroSys 2026, section 5).
 */
import { type Elements, dequantize, quantize } from "@trireme/collectives";
import type { Plan } from "@trireme/workload";
import type { Kernels } from "../kernels/kernels.ts";

/** In what rows travel. */
export type RowPrecision = NonNullable<Plan["dispatchPrecision"]>;

/** Activations on their way through the layers, or gradients on their way back. */
export type RowPass = "forward" | "backward";

/** A format of rows [count, width]. Pointers are byte offsets into the rank's memory. */
export interface RowFormat {
  /** Elements of the communicator that so many rows take. */
  units(count: number, width: number, pass: RowPass): number;
  readonly unitBytes: number;
  /** The elements at a pointer, as the communicator takes them. */
  elements(pointer: number, units: number): Elements;
  encode(rows: number, into: number, count: number, width: number, pass: RowPass): void;
  decode(from: number, rows: number, count: number, width: number, pass: RowPass): void;
}

/** The format of a precision; undefined for float32, which travels as it is. */
export function rowFormat(
  memory: WebAssembly.Memory,
  kernels: Kernels,
  precision: RowPrecision,
): RowFormat | undefined {
  if (precision === "fp32") return undefined;
  return precision === "bf16" ? bf16Rows(memory, kernels) : fp8Rows(memory);
}

function bf16Rows(memory: WebAssembly.Memory, kernels: Kernels): RowFormat {
  return {
    units: (count, width) => count * width,
    unitBytes: 2,
    elements: (pointer, units) => new Uint16Array(memory.buffer, pointer, units),
    encode: (rows, into, count, width) => kernels.toBf16(rows, into, count * width),
    decode: (from, rows, count, width) => kernels.fromBf16(from, rows, count * width),
  };
}

/** Tokens that share a channel's scale on the way back. */
const group = 128;
const scalings = { forward: "per-token", backward: "per-channel" } as const;

/** Bytes and then their scales, in 32-bit words. */
function fp8Rows(memory: WebAssembly.Memory): RowFormat {
  const words = (count: number, width: number): number => Math.ceil((count * width) / 4);
  const scales = (count: number, width: number, pass: RowPass): number =>
    pass === "forward" ? count : Math.ceil(count / group) * width;
  const bytesAt = (pointer: number, count: number, width: number): Uint8Array =>
    new Uint8Array(memory.buffer, pointer, count * width);
  const scalesAt = (pointer: number, count: number, width: number, pass: RowPass): Float32Array =>
    new Float32Array(memory.buffer, pointer + words(count, width) * 4, scales(count, width, pass));
  return {
    units: (count, width, pass) => words(count, width) + scales(count, width, pass),
    unitBytes: 4,
    elements: (pointer, units) => new Int32Array(memory.buffer, pointer, units),
    encode: (rows, into, count, width, pass) => {
      const values = new Float32Array(memory.buffer, rows, count * width);
      const sizes = { tokens: count, channels: width };
      const payload = quantize(values, { ...sizes, scaling: scalings[pass], group });
      bytesAt(into, count, width).set(payload.data);
      scalesAt(into, count, width, pass).set(payload.scales);
    },
    decode: (from, rows, count, width, pass) => {
      const values = dequantize({
        tokens: count,
        channels: width,
        data: bytesAt(from, count, width),
        scales: scalesAt(from, count, width, pass),
        scaling: scalings[pass],
        group,
      });
      new Float32Array(memory.buffer, rows, values.length).set(values);
    },
  };
}
