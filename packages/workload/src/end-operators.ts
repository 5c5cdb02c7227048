/** The kernels at the ends of a model, its table's lookup and its loss, and the one that updates it. */
import type { OperatorList } from "./operator-list.ts";
import { vocabularyBarriers } from "./plan.ts";
import { bytesOf } from "./precision.ts";

/** Rows of the table by token; backward adds each token's gradient to its row, unless the table is frozen. */
export function embedding(
  list: OperatorList,
  tokens: number,
  width: number,
  vocab: number,
  frozen: boolean,
): void {
  const n = tokens * width;
  const e = list.element;
  const shape = [tokens, width, vocab];
  const gradient = bytesOf(list.plan.gradientPrecision);
  list.push("embedding", list.plan.precision, "forward", shape, { flops: 0, bytes: 2 * e * n });
  if (frozen) return;
  list.push("embedding", list.plan.precision, "weight-gradient", shape, {
    flops: n,
    bytes: (e + 2 * gradient) * n,
  });
}

/**
 * The gradient of a table's lookup as autograd writes it, all rows with zeros in most, and its sum with the step's.
 */
export function denseGradient(list: OperatorList, rows: number, width: number): void {
  const n = rows * width;
  const bytes = (2 * list.element + 2 * bytesOf(list.plan.gradientPrecision)) * n;
  list.push("add", "accumulate", "weight-gradient", [rows, width], { flops: n, bytes });
}

/** Cross entropy over one rank's vocabulary; probabilities are kept in 32 bits for backward. */
export function loss(list: OperatorList, rows: number, vocab: number): void {
  const n = rows * vocab;
  const e = list.element;
  const { fusedElementwise, fusedLoss = fusedElementwise } = list.plan;
  // From elementary operations: cast, subtract the maximum, exponentiate, sum, divide, each in 32 bits.
  // In place each is read and written again: cast (e + 4), maximum 4, difference 8, exponential 8, sum 4,
  // quotient 8; backward the product with the loss's gradient 8 and a cast 4 + e.
  const way = fusedLoss ? "" : fusedElementwise ? "-in-place" : "-eager";
  const [forward, backward] = fusedLoss
    ? [e + 4, e + 4]
    : fusedElementwise
      ? [e + 36, e + 12]
      : [e + 28, e + 16];
  // Barriers: probabilities by the rank's own sums are scaled to those of all, in the kernel of the gradient if fused
  // (8). With one, they are cast for the product with the table beforehand (4 + e; e of it if fused).
  const barriers = vocabularyBarriers(list.plan);
  const cast = barriers === 1 ? e + (fusedLoss ? 0 : 4) : 0;
  const scaled = barriers > 0 && !fusedLoss ? 8 : 0;
  const split = barriers === 0 ? "" : `-${barriers}`;
  const form = `${list.plan.precision}${way}${split}`;
  const shape = [rows, vocab];
  const pass = barriers === 1 ? "weight-gradient" : "input-gradient";
  list.push("loss", form, "forward", shape, { flops: 5 * n, bytes: (forward + cast) * n });
  list.push("loss", form, pass, shape, { flops: 2 * n, bytes: (backward + scaled) * n });
}

/**
 * AdamW over the rank's share of the parameters: gradient, master weight in 32 bits and two moments
 * read, the last three written, and the weights in training precision where that is another.
 * Offloaded, the host updates and the device has none.
 */
export function optimizer(list: OperatorList, parameters: number): void {
  const e = list.element;
  const { gradientPrecision, momentPrecision = "fp32" } = list.plan;
  const state = 4 + 2 * bytesOf(momentPrecision);
  const bytes = bytesOf(gradientPrecision) + 2 * state + (e === 4 ? 0 : e);
  const form = list.plan.offload === "optimizer" ? "adamw-host" : "adamw";
  list.push("optimizer", form, "update", [parameters], {
    flops: 14 * parameters,
    bytes: bytes * parameters,
  });
}
