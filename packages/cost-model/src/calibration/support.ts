/**
 * Where measurements support a prediction. A query outside what was measured in any dimension, or far from
 * every measured shape, is an extrapolation: a fit says nothing of it.
 */
import type { Operator } from "@trireme/workload";
import { streamOf } from "../pricer.ts";
import type { Measurement } from "./measurement.ts";

/** Measured sizes, by what is fitted together ("gemm/bf16", "norm/rmsnorm/forward"); one list of numbers a shape. */
export type Support = Readonly<Record<string, readonly (readonly number[])[]>>;

/** Whether an operator is supported, and if not, why. */
export type Supported = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** How far, as a factor in each size, the nearest measured shape may be. */
const reach = 4;

/** What is measured together: products and attention in all their passes, memory-bound kernels each for itself. */
export function supportGroup(op: Operator): string {
  return op.kind === "gemm" || op.kind === "grouped-gemm" || op.kind === "attention"
    ? `${op.kind}/${op.form}`
    : streamOf(op);
}

/** The sizes that an operator's time follows, with their names. */
function sizes(op: Operator): readonly (readonly [string, number])[] {
  const [a, b, c, d, e] = op.shape;
  switch (op.kind) {
    case "gemm":
      return [
        ["batch", a!],
        ["m", b!],
        ["n", c!],
        ["k", d!],
      ];
    case "grouped-gemm":
      return [
        ["groups", a!],
        ["rows", b!],
        ["n", c!],
        ["k", d!],
      ];
    case "attention":
      return [
        ["batch x heads", a! * b!],
        ["query heads a key head", b! / c!],
        ["sequence", d!],
        ["head dim", e!],
      ];
    default:
      return [["bytes", op.bytes]];
  }
}

/** The support that measurements give. */
export function supportOf(measurements: readonly Measurement[]): Support {
  const groups: Record<string, number[][]> = {};
  for (const { operator } of measurements) {
    (groups[supportGroup(operator)] ??= []).push(sizes(operator).map(([, n]) => n));
  }
  return groups;
}

/** Whether an operator lies among what was measured. */
export function supports(support: Support, op: Operator): Supported {
  const name = supportGroup(op);
  const measured = Object.hasOwn(support, name) ? support[name]! : [];
  if (measured.length === 0) {
    return {
      ok: false,
      reason: `nothing was measured of ${name}; measured: ${Object.keys(support).join(", ")}`,
    };
  }
  const query = sizes(op);
  for (const [i, [label, n]] of query.entries()) {
    const each = measured.map((shape) => shape[i]!);
    const [low, high] = [Math.min(...each), Math.max(...each)];
    if (n < low || n > high) {
      return {
        ok: false,
        reason: `${op.key}: ${label} ${n} is outside the measured ${low} to ${high} of ${name}`,
      };
    }
  }
  const distance = Math.min(
    ...measured.map((shape) =>
      Math.max(...query.map(([, n], i) => Math.abs(Math.log(n / shape[i]!)))),
    ),
  );
  if (distance <= Math.log(reach)) return { ok: true };
  return {
    ok: false,
    reason: `${op.key} is a factor ${Math.exp(distance).toFixed(1)} from the nearest measured shape of ${name}; at most ${reach}`,
  };
}
