import { dequantize, fromBf16, fromE4m3, quantize, toBf16, toE4m3 } from "@trireme/collectives";

const [tokens, channels] = [1024, 4096] as const;
const data = Float32Array.from({ length: tokens * channels }, (_, i) => Math.sin(i) * 3);
const bf16 = toBf16(data);
const tokenwise = { tokens, channels, scaling: "per-token" } as const;
const payload = quantize(data, tokenwise);
const table = Float32Array.from({ length: 256 }, (_, code) => fromE4m3(code));

const figure = { unit: "s", better: "lower", target: null } as const;

export const benchmarks = [
  {
    ...figure,
    id: "collectives/to-bf16",
    what: "rounding 4 Mi f32 to bf16",
    time: (): Uint16Array => toBf16(data),
    peer: {
      name: "a loop over the bits in JavaScript",
      time: (): Uint16Array => {
        const out = new Uint16Array(data.length);
        const bits = new Uint32Array(data.buffer);
        for (let i = 0; i < bits.length; i++) {
          const b = bits[i]!;
          out[i] = (b + 0x7fff + ((b >>> 16) & 1)) >>> 16;
        }
        return out;
      },
    },
  },
  {
    ...figure,
    id: "collectives/from-bf16",
    what: "widening 4 Mi bf16 to f32",
    time: (): Float32Array => fromBf16(bf16),
    peer: {
      name: "a loop over the bits in JavaScript",
      time: (): Float32Array => {
        const out = new Float32Array(bf16.length);
        const bits = new Uint32Array(out.buffer);
        for (let i = 0; i < bits.length; i++) bits[i] = bf16[i]! << 16;
        return out;
      },
    },
  },
  {
    ...figure,
    id: "collectives/to-fp8",
    what: "scales per token and E4M3 codes of 1,024 x 4,096 f32",
    time: (): Uint8Array => quantize(data, tokenwise).data,
    peer: {
      name: "the definition, number by number in JavaScript",
      time: (): Uint8Array => {
        const out = new Uint8Array(data.length);
        for (let t = 0; t < tokens; t++) {
          let most = 0;
          const row = data.subarray(t * channels, (t + 1) * channels);
          for (const x of row) most = Math.max(most, Math.abs(x));
          for (let i = 0; i < channels; i++) out[t * channels + i] = toE4m3((row[i]! * 448) / most);
        }
        return out;
      },
    },
  },
  {
    ...figure,
    id: "collectives/from-fp8",
    what: "values of 1,024 x 4,096 E4M3 codes with scales per token",
    time: (): Float32Array => dequantize(payload),
    peer: {
      name: "a table of the 256 values in JavaScript",
      time: (): Float32Array => {
        const out = new Float32Array(payload.data.length);
        for (let i = 0; i < out.length; i++) {
          out[i] = table[payload.data[i]!]! * payload.scales[Math.floor(i / channels)]!;
        }
        return out;
      },
    },
  },
];
