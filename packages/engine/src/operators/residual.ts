import type { Tape, Variable } from "../tape.ts";
import { gradientOf } from "../tape.ts";

/**
 * x + branch, whose own value nothing needs afterwards: it is given back. Both gradients are copies: the branch's weight gradients may be taken much later.
 */
export function residual(tape: Tape, x: Variable, branch: Variable): Variable {
  const { kernels, pool } = tape;
  const { size } = x.value;
  const y = tape.variable(x.value.dims);
  kernels.add(x.value.pointer, branch.value.pointer, y.value.pointer, size);
  tape.free(branch.value);
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      for (const v of [x, branch]) tape.contribute(v, (dv) => pool.copy(dy, dv, size));
    },
    kept: () => [y.value, y.gradient],
  });
  return y;
}
