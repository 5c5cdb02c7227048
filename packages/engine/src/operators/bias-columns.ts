import { addTo } from "../tape/add-gradient.ts";
import type { Range } from "../memory/slice.ts";
import { type Parameter, type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { matrixDims } from "../memory/tensor.ts";

/** y[:, columns] += bias in place; y is fresh: nothing has read it. */
export function addBiasColumns(tape: Tape, y: Variable, bias: Parameter, columns: Range): void {
  const { kernels, pool } = tape;
  const [rows, width] = matrixDims(y.value);
  const { start, count } = columns;
  if (count === 0) return;
  /** Lends a row of the whole width, zeros at first. */
  const lend = (use: (row: number, part: number) => void): void => {
    const row = pool.allocate([width]);
    kernels.fill(row.pointer, 0, width);
    use(row.pointer, row.pointer + start * 4);
    pool.free(row);
  };
  lend((row, part) => {
    kernels.copy(bias.value.pointer, part, count);
    kernels.addBias(y.value.pointer, row, rows, width);
  });
  if (bias.frozen === true) return;
  tape.record({
    weight: () => {
      lend((row, part) => {
        kernels.biasGradient(gradientOf(y).pointer, row, rows, width);
        addTo(tape, bias, (gradient) => kernels.accumulate(part, gradient, count));
      });
    },
  });
}
