/** Matrices side by side, and apart again: copies, so that products read dense rows. */
import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { type Tensor, matrixDims } from "../memory/tensor.ts";

/** Parts [rows, widths] as one matrix [rows, Σ widths]. */
export function joinColumns(tape: Tape, parts: readonly Variable[]): Variable {
  const rows = matrixDims(parts[0]!.value)[0];
  const widths = parts.map(({ value }) => matrixDims(value)[1]);
  const y = tape.variable([rows, widths.reduce((a, b) => a + b, 0)]);
  const places = placesOf(widths);
  parts.forEach(({ value }, i) => placeColumns(tape, value, y.value, places[i]!));
  tape.record({
    input: () => {
      parts.forEach((part, i) => {
        const gradient = tape.allocate(part.value.dims);
        takeColumns(tape, gradientOf(y), places[i]!, gradient);
        tape.give(part, gradient);
      });
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}

/** Columns of x [rows, Σ widths] as parts [rows, widths]; each of them needs a gradient. */
export function splitColumns(tape: Tape, x: Variable, widths: readonly number[]): Variable[] {
  const [rows] = matrixDims(x.value);
  const places = placesOf(widths);
  const parts = widths.map((width, i) => {
    const part = tape.variable([rows, width]);
    takeColumns(tape, x.value, places[i]!, part.value);
    return part;
  });
  const { dims } = x.value;
  tape.record({
    input: () => {
      const dx = tape.allocate(dims);
      parts.forEach((part, i) => placeColumns(tape, gradientOf(part), dx, places[i]!));
      tape.give(x, dx);
    },
    spent: () => parts.flatMap((part) => [part.value, part.gradient]),
  });
  return parts;
}

/** The first column of each part. */
function placesOf(widths: readonly number[]): number[] {
  let end = 0;
  return widths.map((width) => (end += width) - width);
}

function placeColumns({ kernels }: Tape, part: Tensor, whole: Tensor, place: number): void {
  const [rows, width] = matrixDims(part);
  const stride = matrixDims(whole)[1];
  kernels.copyRows(part.pointer, width, whole.pointer + place * 4, stride, rows, width);
}

function takeColumns({ kernels }: Tape, whole: Tensor, place: number, part: Tensor): void {
  const [rows, width] = matrixDims(part);
  const stride = matrixDims(whole)[1];
  kernels.copyRows(whole.pointer + place * 4, stride, part.pointer, width, rows, width);
}
