/** Attention kernels: their generation's share of the peak, and what short sequences and narrow windows lose of it. */
import type { Accelerator } from "@trireme/topology";
import type { Operator } from "@trireme/workload";
import type { AttentionFractions, Characteristics } from "./characteristics.ts";

/**
 * On a device of many multiprocessors, rounding of the mask's diagonal and the start of each block of queries, in
 * positions (FlashAttention-2, Figs. 5 and 6).
 */
const causalRamp = 450;
/** The same without a mask. */
const fullRamp = 150;
/**
 * Keys that one edge of the mask costs a query. A causal query sees half of the positions, so that of its ramp's half
 * the start takes a full one's ramp, and the diagonal the rest: about half a tile of 128.
 */
const edge = causalRamp / 2 - fullRamp;

/** Fractions of the kernels' generation: the device's best where the form names none, or none older is known. */
export function attentionFractions(c: Characteristics, form: string): AttentionFractions {
  const older = c.attention.older;
  if (form.startsWith("flash1")) return older[1] ?? c.attention;
  if (form.startsWith("flash2")) return older[2] ?? c.attention;
  return form.startsWith("flash3") ? (older[3] ?? c.attention) : c.attention;
}

/**
 * How much longer flash attention takes than its arithmetic at full rate. Kernels work in tiles, so that each edge of
 * the mask costs part of one, and every block of queries starts anew: little beside a long sequence, twice the
 * arithmetic of a window of 128 keys.
 */
export function attentionRamp(a: Accelerator, op: Operator): number {
  if (a.kind === "cpu") return 1;
  const sequence = op.shape[3]!;
  const full = op.form.includes("full");
  const window = Math.min(sequence, windowOf(op.form) ?? sequence);
  if (window === sequence) return 1 + (full ? fullRamp : causalRamp) / sequence;
  // The first queries of a sequence see less than a window, as without one.
  const seen = window - (window * (window - 1)) / (2 * sequence);
  const cut = (sequence - window) / sequence;
  // Without a causal mask a query sees as many behind it, with an edge there too.
  const keys = full ? 2 * seen - 1 : seen;
  return 1 + (fullRamp + edge * (full ? 2 * cut : 1 + cut)) / keys;
}

/** Tokens that a query sees by the operator's form, "flash-window128"; undefined where it sees all. */
function windowOf(form: string): number | undefined {
  const found = /-window(\d+)/.exec(form)?.[1];
  return found === undefined ? undefined : Number(found);
}
