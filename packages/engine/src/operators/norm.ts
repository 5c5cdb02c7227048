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
  const [means, deviations] = [tape.allocate([rows]), tape.allocate([rows])];
  const [mean, rstd] = [means.pointer, deviations.pointer];
  const [xs, ys] = [x.value.pointer, y.value.pointer];
  const [gains, shifts] = [gain.value.pointer, bias.value.pointer];
  kernels.layerNormForward(xs, gains, shifts, ys, mean, rstd, rows, width, epsilon);

  tape.record({
    input: () => {
      const dy = gradientOf(y);
      const { pointer: d } = dy;
      const [dg, db] = gainGradients(tape, gain, bias);
      const g = gain.value.pointer;
      // In place: nothing else reads dy.
      kernels.layerNormBackward(xs, g, mean, rstd, d, d, dg, db, rows, width);
      tape.give(x, dy);
    },
    spent: () => [y.value, means, deviations],
  });
  return y;
}

/** Division of each row of x [rows, width] by its root mean square, then gain (Zhang, Sennrich, 2019). */
export function rmsNorm(tape: Tape, x: Variable, gain: Parameter, epsilon: number): Variable {
  const { kernels } = tape;
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows, width]);
  const roots = tape.allocate([rows]);
  const rstd = roots.pointer;
  const [xs, ys] = [x.value.pointer, y.value.pointer];
  kernels.rmsNormForward(xs, gain.value.pointer, ys, rstd, rows, width, epsilon);

  tape.record({
    input: () => {
      const dy = gradientOf(y);
      const { pointer: d } = dy;
      const [dg] = gainGradients(tape, gain, gain);
      kernels.rmsNormBackward(xs, gain.value.pointer, rstd, d, d, dg, rows, width);
      tape.give(x, dy);
    },
    spent: () => [y.value, roots],
  });
  return y;
}

/** Where the gradients of gain and bias go: of frozen ones to working space that nobody reads. */
function gainGradients(tape: Tape, gain: Parameter, bias: Parameter): readonly [number, number] {
  if (gain.frozen !== true) return [gain.gradient.pointer, bias.gradient.pointer];
  const { size } = gain.value;
  const space = tape.pool.scratch(2 * size * 4);
  return [space, space + size * 4];
}
