import { Tape, type Variable, gradientOf } from "../tape.ts";

/**
 * Runs `body` on x and keeps only its result: what backward needs is computed again when it comes
 * (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016).
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

  let again: Tape | undefined;
  tape.record({
    input: () => {
      again = new Tape(kernels, pool, true, products);
      const input: Variable = { value: x.value, needsGradient: true, gradient: undefined };
      const output = body(again, input);
      output.gradient = gradientOf(y);
      again.backwardInput();
      tape.contribute(x, (dx) => pool.copy(gradientOf(input).pointer, dx, input.value.size));
    },
    weight: () => {
      again!.backwardWeight();
      again!.release();
    },
    kept: () => [y.value, y.gradient],
  });
  return y;
}
