import { RestingTensor } from "../memory/resting-tensor.ts";
import type { Tape, Variable } from "../tape/tape.ts";
import { gradientOf } from "../tape/tape.ts";
import { matrixDims } from "../memory/tensor.ts";

/**
 * GeLU in the tanh form of GPT-2, element by element; x is a product that nothing else reads, and
 * makes room for the slope there, unless it rests in fewer bits.
 */
export function gelu(tape: Tape, x: Variable): Variable {
  const { kernels } = tape;
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows, width]);
  const { pointer: out, size } = y.value;
  const keepsSlope = tape.records && !(x.value instanceof RestingTensor);
  if (keepsSlope) kernels.geluSplit(x.value.pointer, out, size);
  else kernels.geluForward(x.value.pointer, out, size);
  tape.record({
    input: () => {
      const gradient = gradientOf(y);
      const dy = gradient.pointer;
      if (x.value instanceof RestingTensor) {
        x.value.inParts((values, row, count) => {
          const at = dy + row * width * 4;
          kernels.geluBackward(values, at, at, count * width);
        });
        tape.give(x, gradient);
        return;
      }
      tape.turn(x, (dx) => kernels.multiply(x.value.pointer, dy, dx, size));
      tape.free(gradient);
    },
    spent: () => [y.value],
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
      const { value } = x;
      if (value instanceof RestingTensor) {
        tape.contribute(x, (dx) => {
          value.inParts((values, row, count) => {
            const [d, into] = [dy + row * width * 4, dx + row * both * 4];
            kernels.copy(values, into, count * both);
            kernels.swigluBackward(into, d, into, count, width);
          });
        });
        return;
      }
      tape.turn(x, (dx) => kernels.swigluBackward(value.pointer, dy, dx, rows, width));
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}
