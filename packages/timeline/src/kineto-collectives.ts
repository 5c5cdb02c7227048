/** What PyTorch's names of collectives mean, and how many bytes its arguments say were moved. */
import type { Bytes } from "@trireme/core";
import type { SpanKind } from "./kind.ts";
import { type Slice, numberOf } from "./trace-events.ts";

/** In this order: "all_reduce" is also a "reduce", "reduce_scatter" too. */
const words: readonly (readonly [RegExp, SpanKind])[] = [
  [/all_?reduce/, "all-reduce"],
  [/reduce_?scatter/, "reduce-scatter"],
  [/all_?gather/, "all-gather"],
  [/all_?to_?all/, "all-to-all"],
  [/broadcast/, "broadcast"],
  [/barrier/, "barrier"],
  [/recv|receive/, "receive"],
  [/send/, "send"],
];

const sizes: Readonly<Record<string, number>> = {
  Byte: 1,
  Char: 1,
  Bool: 1,
  Float8_e4m3fn: 1,
  Float8_e5m2: 1,
  Half: 2,
  BFloat16: 2,
  Short: 2,
  Int: 4,
  Float: 4,
  Long: 8,
  Double: 8,
};

/**
 * The kind of a collective: of a kernel of NCCL or RCCL, whose launch names it, or of a backend's
 * annotation such as "gloo:all_reduce". Undefined for anything else; a collective without a kind of
 * its own (reduce, gather, scatter) is "other".
 */
export function collectiveKind(slice: Slice, launch: Slice): SpanKind | undefined {
  const named = slice.args["Collective name"] ?? launch.args["Collective name"];
  const isKernel = slice.category === "kernel" && /nccl|msccl/i.test(slice.name);
  const isAnnotation = /^(gloo|nccl|mpi|ucc|xccl):/.test(slice.name);
  if (!isKernel && !isAnnotation) return undefined;
  const candidates = [slice.name, typeof named === "string" ? named : ""];
  for (const name of candidates) {
    // "SendRecv" kernels do both; what they were launched for tells which.
    if (/SendRecv/.test(name) && typeof named === "string") continue;
    const found = words.find(([word]) => word.test(name.toLowerCase()));
    if (found !== undefined) return found[1];
  }
  return "other";
}

/** Bytes of the larger of what a rank gives and gets; 0 when the arguments do not tell. */
export function messageBytes(args: Readonly<Record<string, unknown>>): Bytes {
  const size = sizes[String(args["dtype"])] ?? 0;
  const elements = Math.max(
    numberOf(args["In msg nelems"]) ?? 0,
    numberOf(args["Out msg nelems"]) ?? 0,
  );
  return size * elements;
}
