/**
 * MegaScale-MoE's gradient reduction (EuroSys 2026, section 5): each rank rounds its f32 gradients
 * once, all exchange their segments with an all-to-all, and the owner adds in f32. A ring in BF16
 * would move the same bytes but round n - 1 times on the way. FP8 halves the bytes again.
 */
import { TriremeError } from "@trireme/core";
import type { Communicator } from "../communicator/communicator.ts";
import { sumBf16, toBf16 } from "./bf16.ts";
import { type QuantizeOptions, addInto, dequantize, quantize } from "./fp8.ts";

/** Unit roundoff: half of the distance between neighbours, relative. */
export const unitRoundoff: Readonly<Record<"bf16" | "e4m3" | "f32", number>> = {
  bf16: 2 ** -8,
  e4m3: 2 ** -4,
  f32: 2 ** -24,
};

/**
 * Reduce-scatter of f32 with BF16 on the wire; sums in f32 in the order of rank. Blocks until done.
 * Each term errs by at most 2^-8 of its magnitude.
 */
export function reduceScatterBf16(
  communicator: Communicator,
  input: Float32Array,
  output: Float32Array,
): void {
  const { ranks } = communicator;
  if (input.length !== output.length * ranks) {
    throw new TriremeError(
      "COUNT",
      `input of ${input.length} elements, must be ${ranks} x ${output.length}`,
    );
  }
  const sent = toBf16(input);
  const received = new Uint16Array(input.length);
  communicator.allToAll(sent, received).wait();
  const count = output.length;
  sumBf16(
    output,
    Array.from({ length: ranks }, (_, rank) => received.subarray(rank * count, (rank + 1) * count)),
  );
}

/**
 * Reduce-scatter of a matrix [tokens, channels] per rank with FP8 on the wire; `output` is this
 * rank's segment of `tokens / ranks` tokens. Sums in f32 in the order of rank.
 */
export function reduceScatterFp8(
  communicator: Communicator,
  input: Float32Array,
  output: Float32Array,
  options: QuantizeOptions,
): void {
  const { ranks } = communicator;
  const { tokens, channels } = options;
  const perRank = tokens / ranks;
  if (!Number.isInteger(perRank) || output.length !== perRank * channels) {
    throw new TriremeError(
      "COUNT",
      `${tokens} tokens on ${ranks} ranks with ${output.length} elements out; tokens must be a multiple of the ranks, out ${Math.floor(perRank) * channels}`,
    );
  }
  if (input.length !== tokens * channels) {
    throw new TriremeError(
      "COUNT",
      `input of ${input.length} elements, must be ${tokens} tokens x ${channels} channels = ${tokens * channels}`,
    );
  }
  output.fill(0);
  const parts = Array.from({ length: ranks }, (_, rank) =>
    quantize(input.subarray(rank * output.length, (rank + 1) * output.length), {
      ...options,
      tokens: perRank,
    }),
  );
  const [bytes, scales] = [output.length, parts[0]!.scales.length];
  // Bytes and scales travel as 32-bit words, one message each.
  const words = Math.ceil(bytes / 4);
  const sent = new Int32Array(ranks * (words + scales));
  parts.forEach((part, rank) => {
    const at = rank * (words + scales);
    new Uint8Array(sent.buffer, at * 4, bytes).set(part.data);
    new Float32Array(sent.buffer, (at + words) * 4, scales).set(part.scales);
  });
  const received = new Int32Array(sent.length);
  communicator.allToAll(sent, received).wait();
  for (let rank = 0; rank < ranks; rank++) {
    const at = rank * (words + scales);
    const values = dequantize({
      ...parts[0]!,
      data: new Uint8Array(received.buffer, at * 4, bytes),
      scales: new Float32Array(received.buffer, (at + words) * 4, scales),
    });
    addInto(output, values);
  }
}
