import type { Parameter, Tape, Variable } from "../tape.ts";
import { gradientOf } from "../tape.ts";
import { matrixDims } from "../tensor.ts";

/** Layer normalisation of each row of x [rows, width], then gain and bias (Ba et al., 2016). */
export function layerNorm(
  tape: Tape,
  x: Variable,
  gain: Parameter,
  bias: Parameter,
  epsilon: number,
): Variable {
  const { kernels } = tape;
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows, width]);
  const mean = tape.allocate([rows]).pointer;
  const rstd = tape.allocate([rows]).pointer;
  const [xs, ys] = [x.value.pointer, y.value.pointer];
  const [g, b] = [gain.value.pointer, bias.value.pointer];
  kernels.layerNormForward(xs, g, b, ys, mean, rstd, rows, width, epsilon);

  const [dg, db] = [gain.gradient.pointer, bias.gradient.pointer];
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      tape.contribute(x, (dx) => {
        kernels.layerNormBackward(xs, g, mean, rstd, dy, dx, dg, db, rows, width);
      });
    },
  });
  return y;
}

/** Division of each row of x [rows, width] by its root mean square, then gain (Zhang, Sennrich, 2019). */
export function rmsNorm(tape: Tape, x: Variable, gain: Parameter, epsilon: number): Variable {
  const { kernels } = tape;
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows, width]);
  const rstd = tape.allocate([rows]).pointer;
  const [xs, ys, g] = [x.value.pointer, y.value.pointer, gain.value.pointer];
  kernels.rmsNormForward(xs, g, ys, rstd, rows, width, epsilon);

  const dg = gain.gradient.pointer;
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      tape.contribute(x, (dx) => {
        kernels.rmsNormBackward(xs, g, rstd, dy, dx, dg, rows, width);
      });
    },
  });
  return y;
}
