import { Tape, type Variable, gradientOf } from "../tape/tape.ts";

/**
 * Runs `body` on x and keeps only its result: what backward needs is computed again when it comes
 * (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016). Gradients of weights are taken
 * in the first half too: kept for a second, what they need would be as large as what was not kept.
 */
export function recomputed(
  tape: Tape,
  x: Variable,
  body: (tape: Tape, x: Variable) => Variable,
): Variable {
  if (!tape.records) return body(tape, x);
  const { kernels, pool, products } = tape;
  const first = new Tape(kernels, pool, false, products);
  const result = body(first, { ...x, needsGradient: false, gradient: undefined });
  const y = tape.variable(result.value.dims);
  pool.copy(result.value.pointer, y.value.pointer, y.value.size);
  first.release();

  tape.record({
    input: () => {
      const again = new Tape(kernels, pool, true, products);
      const input: Variable = { value: x.value, needsGradient: true, gradient: undefined };
      const output = body(again, input);
      output.gradient = again.adopt(gradientOf(y), tape);
      again.backward();
      tape.give(x, tape.adopt(gradientOf(input), again));
      again.release();
    },
    spent: () => [y.value],
  });
  return y;
}
