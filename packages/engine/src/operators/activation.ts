import type { Tape, Variable } from "../tape.ts";
import { gradientOf } from "../tape.ts";
import { matrixDims } from "../tensor.ts";

/** GeLU in the tanh form of GPT-2, element by element; x is a product that nothing else reads. */
export function gelu(tape: Tape, x: Variable): Variable {
  const { kernels } = tape;
  const { size } = x.value;
  const y = tape.variable(x.value.dims);
  kernels.geluForward(x.value.pointer, y.value.pointer, size);
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      tape.turn(x, (dx) => kernels.geluBackward(x.value.pointer, dy, dx, size));
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}

/** SwiGLU: x [rows, 2·width], gate first, to silu(gate)·up [rows, width] (Shazeer, 2020); x as for `gelu`. */
export function swiglu(tape: Tape, x: Variable): Variable {
  const { kernels } = tape;
  const [rows, both] = matrixDims(x.value);
  const width = both / 2;
  const y = tape.variable([rows, width]);
  kernels.swigluForward(x.value.pointer, y.value.pointer, rows, width);
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      tape.turn(x, (dx) => kernels.swigluBackward(x.value.pointer, dy, dx, rows, width));
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}
