/** One device that computes, as its vendor describes it, and the look-up of the known ones. */
import {
  type Bytes,
  type BytesPerSecond,
  type FlopsPerSecond,
  TriremeError,
  type Watts,
  nearestName,
} from "@trireme/core";
import { accelerators } from "./catalogue/accelerators.ts";

/** A number format that a device multiplies in; "int8" with sums in 32 bits. */
export type Precision = "fp64" | "fp32" | "tf32" | "bf16" | "fp16" | "fp8" | "int8" | "fp4";

export interface Accelerator {
  readonly name: string;
  /** "hpu" is Intel's word for a Gaudi. */
  readonly kind: "gpu" | "tpu" | "hpu" | "cpu";
  /** Generation, in lower case: "ampere", "hopper", "cdna2", "x86". */
  readonly architecture: string;
  /** Dense peak of matrix products; a precision without hardware of its own is left out. */
  readonly peak: Readonly<Partial<Record<Precision, FlopsPerSecond>>>;
  readonly memory: Bytes;
  readonly memoryBandwidth: BytesPerSecond;
  /** Last cache on the device that all its multiprocessors share (a TPU's shared scratchpad, a Gaudi's SRAM). */
  readonly l2: Bytes;
  /** Streaming multiprocessors, compute units, Xe cores, tensor cores of a TPU, matrix engines of a Gaudi, or cores. */
  readonly multiprocessors: number;
  /** All scale-up ports together, one direction; 0 without. */
  readonly scaleUp: BytesPerSecond;
  /** Power that the part may draw: the vendor's TDP, or where devices report another limit, that. */
  readonly tdp: Watts;
  /** With no process on it. */
  readonly idlePower: Watts;
  /** Where the figures come from; says of each that no document gives that it is an assumption. */
  readonly source: string;
}

/**
 * Rate of products in this precision. A CPU emulates BF16 and FP8: operands are rounded, products are in fp32 and at its
 * rate. Undefined where the part does not compute in the precision at all.
 */
export function peakOf(a: Accelerator, precision: Precision): FlopsPerSecond | undefined {
  return emulates(a, precision) ? a.peak.fp32 : a.peak[precision];
}

/** Whether products in this precision are computed in fp32, on operands that are rounded to it. */
export function emulates(a: Accelerator, precision: Precision): boolean {
  if (a.kind !== "cpu" || a.peak[precision] !== undefined) return false;
  return precision === "bf16" || precision === "fp8";
}

/**
 * The accelerator of the catalogue with this name.
 * @throws TriremeError "ACCELERATOR" with the nearest known name.
 */
export function accelerator(name: string): Accelerator {
  const found = accelerators.find((a) => a.name === name);
  if (found) return found;
  const names = accelerators.map((a) => a.name);
  const nearest = nearestName(name, names);
  const hint = nearest ? `did you mean "${nearest}"?` : `known: ${names.join(", ")}`;
  throw new TriremeError("ACCELERATOR", `no accelerator "${name}"; ${hint}`);
}
