import type { Tape, Variable } from "../tape/tape.ts";
import { gradientOf } from "../tape/tape.ts";

/**
 * x + branch, whose own value nothing needs afterwards: it is given back. The branch takes the
 * gradient itself, and keeps it until its weight gradients are taken; x gets a copy.
 */
export function residual(tape: Tape, x: Variable, branch: Variable): Variable {
  const { kernels } = tape;
  const { size } = x.value;
  const y = tape.variable(x.value.dims);
  kernels.add(x.value.pointer, branch.value.pointer, y.value.pointer, size);
  tape.free(branch.value);
  tape.record({
    input: () => {
      const dy = gradientOf(y);
      tape.contribute(x, (dx) => kernels.copy(dy.pointer, dx, size));
      tape.give(branch, dy);
    },
    spent: () => [y.value],
  });
  return y;
}
