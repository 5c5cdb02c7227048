import { type ExpertGroup, dispatchOf } from "../experts/dispatch.ts";
import type { Router } from "../experts/router.ts";
import { restOf } from "../memory/resting-tensor.ts";
import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";

/**
 * A mixture of experts (Shazeer et al., 2017): of tokens x [T, width] with the router's logits [T, E],
 * each goes through the experts that are chosen for it, and gets the weighted sum of their outputs.
 * `expert(e, rows)` runs expert e of the rank on its rows; it is not called for an expert without any.
 */
export function mixtureOfExperts(
  tape: Tape,
  x: Variable,
  logits: Variable,
  router: Router,
  group: ExpertGroup,
  expert: (index: number, rows: Variable) => Variable,
): Variable {
  const { kernels } = tape;
  const { memory } = tape.pool;
  const routed = router.route(view(memory, logits.value));
  const weights = Float32Array.from(routed.kept.weights);
  const dispatch = dispatchOf(tape, routed.kept, weights, group);
  const { starts } = dispatch;
  const experts = starts.length - 1;

  const input = dispatch.toExperts(x.value);
  let rowsGradient: Tensor | undefined;
  const inputs = rowsByExpert(tape, input, starts).map((value): Variable => {
    return { value, needsGradient: true, gradient: undefined };
  });
  // Before the experts, so that in backward it comes after them.
  tape.record({
    input: () => {
      const gradient = tape.allocate(input.dims);
      inputs.forEach((rows, e) => {
        if (rows.value.size === 0) return;
        const part = gradientOf(rows);
        kernels.copy(part.pointer, rowsOf(gradient, starts, e).pointer, part.size);
        tape.free(part);
      });
      tape.give(x, dispatch.toExpertsGradient(gradient));
      tape.free(gradient);
    },
    kept: () => [input, ...inputs.map(({ value }) => value), rowsGradient],
  });
  const outputs = inputs.map((rows, e) => {
    if (rows.value.size === 0) return rows;
    const result = expert(e, rows);
    tape.rest();
    return result;
  });
  const width = x.value.dims[1]!;
  const output = tape.activation([starts[experts]!, width]);
  outputs.forEach(({ value }, e) => {
    kernels.copy(value.pointer, rowsOf(output, starts, e).pointer, value.size);
    tape.free(value);
  });
  const y: Variable = {
    value: dispatch.toTokens(output),
    needsGradient: true,
    gradient: undefined,
  };
  tape.record({
    input: () => {
      const gradient = dispatch.toTokensGradient(gradientOf(y));
      rowsGradient = gradient.rows;
      rowsByExpert(tape, rowsGradient, starts).forEach((part, e) => {
        if (part.size > 0) tape.give(outputs[e]!, part);
      });
      const dlogits = tape.allocate(logits.value.dims);
      const all = view(memory, logits.value);
      view(memory, dlogits).set(router.gradient(all, routed, gradient.weights));
      tape.give(logits, dlogits);
    },
    spent: () => [y.value, y.gradient, output],
  });
  return y;
}

/**
 * The rows of each expert: parts of `all`, or, where activations are kept in fewer bits, tensors of their
 * own, at rest, in its place.
 */
function rowsByExpert(tape: Tape, all: Tensor, starts: Int32Array): Tensor[] {
  const parts = Array.from({ length: starts.length - 1 }, (_, e) => rowsOf(all, starts, e));
  if (tape.products.storage === undefined) return parts;
  const own = parts.map((part) => {
    if (part.size === 0) return part;
    const rows = tape.activation(part.dims);
    tape.kernels.copy(part.pointer, rows.pointer, part.size);
    restOf(rows);
    return rows;
  });
  tape.free(all);
  return own;
}

/** The rows of one expert. */
function rowsOf(all: Tensor, starts: Int32Array, expert: number): Tensor {
  const width = all.dims[1]!;
  const [from, to] = [starts[expert]!, starts[expert + 1]!];
  return {
    pointer: all.pointer + from * width * 4,
    dims: [to - from, width],
    size: (to - from) * width,
  };
}
