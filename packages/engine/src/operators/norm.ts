import { addTo } from "../tape/add-gradient.ts";
import type { Parameter, Tape, Variable } from "../tape/tape.ts";
import { gradientOf } from "../tape/tape.ts";
import { type Tensor, matrixDims } from "../memory/tensor.ts";

/** How rows are normalised. */
export interface NormOptions {
  /** Added to the variance, or the mean square. */
  readonly epsilon: number;
  /** Takes the gradients of gain and bias in the first half of backward. */
  readonly atOnce?: boolean;
}

/** Layer normalisation of each row of x [rows, width], then gain and bias (Ba et al., 2016). */
export function layerNorm(
  tape: Tape,
  x: Variable,
  gain: Parameter,
  bias: Parameter,
  options: NormOptions,
): Variable {
  const { kernels } = tape;
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows, width]);
  const [means, deviations] = [tape.allocate([rows]), tape.allocate([rows])];
  const [mean, rstd] = [means.pointer, deviations.pointer];
  const [xs, ys] = [x.value.pointer, y.value.pointer];
  const [gains, shifts] = [gain.value.pointer, bias.value.pointer];
  kernels.layerNormForward(xs, gains, shifts, ys, mean, rstd, rows, width, options.epsilon);

  recordNorm(tape, x, y, [gain, bias], [means, deviations], options, (d, [dg, db]) => {
    const [values, g] = [x.value.pointer, gain.value.pointer];
    kernels.layerNormBackward(values, g, mean, rstd, d, d, dg!, db!, rows, width);
  });
  return y;
}

/**
 * Division of each row of x, or of each part of it as long as the gain, by its root mean square, then
 * gain (Zhang, Sennrich, 2019).
 */
export function rmsNorm(tape: Tape, x: Variable, gain: Parameter, options: NormOptions): Variable {
  const { kernels } = tape;
  const width = gain.value.size;
  const rows = x.value.size / width;
  const y = tape.variable(x.value.dims);
  const roots = tape.allocate([rows]);
  const rstd = roots.pointer;
  const [xs, ys] = [x.value.pointer, y.value.pointer];
  kernels.rmsNormForward(xs, gain.value.pointer, ys, rstd, rows, width, options.epsilon);

  recordNorm(tape, x, y, [gain], [roots], options, (d, [dg]) => {
    const [values, g] = [x.value.pointer, gain.value.pointer];
    kernels.rmsNormBackward(values, g, rstd, d, d, dg!, rows, width);
  });
  return y;
}

/**
 * The way back. `backward` makes of dy dx in place, for nothing else reads it, and adds to the
 * gradients of the parameters at the places it is given; they are kept until the second half takes them.
 */
function recordNorm(
  tape: Tape,
  x: Variable,
  y: Variable,
  parameters: readonly Parameter[],
  used: readonly Tensor[],
  { atOnce = false }: NormOptions,
  backward: (d: number, gradients: readonly number[]) => void,
): void {
  const { kernels } = tape;
  let sums: readonly Tensor[] = [];
  const input = (): void => {
    const dy = gradientOf(y);
    sums = parameters.map(({ value }) => tape.allocate(value.dims));
    for (const { pointer, size } of sums) kernels.fill(pointer, 0, size);
    backward(
      dy.pointer,
      sums.map(({ pointer }) => pointer),
    );
    tape.give(x, dy);
  };
  const weight = (): void => {
    parameters.forEach((parameter, i) => {
      if (parameter.frozen === true) return;
      const { pointer, size } = sums[i]!;
      addTo(tape, parameter, (gradient) => kernels.accumulate(pointer, gradient, size));
    });
  };
  const both = (): void => {
    input();
    weight();
  };
  const rest = { spent: () => [y.value, ...used], kept: () => sums };
  tape.record(atOnce ? { input: both, ...rest } : { input, weight, ...rest });
}
