import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { matrixDims, view } from "../memory/tensor.ts";

/** x [rows, width], each row times the sigmoid of its gate [rows, 1]. */
export function sigmoidGate(tape: Tape, x: Variable, gate: Variable): Variable {
  const { kernels, pool } = tape;
  const [rows, width] = matrixDims(x.value);
  const order = tape.allocate([rows]);
  new Int32Array(pool.memory.buffer, order.pointer, rows).forEach((_, row, into) => {
    into[row] = row;
  });
  const factors = tape.allocate([rows]);
  view(pool.memory, factors).set(view(pool.memory, gate.value).map((z) => 1 / (1 + Math.exp(-z))));
  const y = tape.variable([rows, width]);
  // Rows times weights, as they go to experts; here each stays where it is.
  const sizes = [rows, 1, width] as const;
  const scaled = (from: number, to: number): void => {
    kernels.spreadRows(from, order.pointer, factors.pointer, to, ...sizes);
  };
  scaled(x.value.pointer, y.value.pointer);
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      const dgate = tape.allocate(gate.value.dims);
      const values = tape.valueOf(x).pointer;
      kernels.combineWeightsGradient(dy, values, order.pointer, dgate.pointer, ...sizes);
      const gradients = view(pool.memory, dgate);
      view(pool.memory, factors).forEach((g, row) => (gradients[row]! *= g * (1 - g)));
      tape.contribute(x, (dx) => scaled(dy, dx));
      tape.give(gate, dgate);
    },
    spent: () => [y.value, y.gradient, order, factors],
  });
  return y;
}
