/**
 * The conjugate operators around a pair of products that tensor-parallel ranks share out (Shoeybi et
 * al., Megatron-LM, 2019, section 3; with sequence parallelism Korthikanti et al., 2022, section 4.2).
 * Entering, each rank needs all tokens; leaving, each has a part of the sum.
 */
import { addTo } from "../add-gradient.ts";
import type { TensorParallel } from "../parallel.ts";
import { type Parameter, type Tape, type Variable, gradientOf } from "../tape.ts";
import { type Tensor, matrixDims, view } from "../tensor.ts";

/** What the first product reads, and a way to forget it until a backward gathers it once more. */
export interface Entered {
  readonly y: Variable;
  readonly drop: () => void;
}

/**
 * Before the first product: the identity, whose gradient is summed; with sequence parallelism
 * x [rows / ranks, width] is gathered to [rows, width] and its gradient reduced and scattered.
 */
export function enterTensorParallel(tape: Tape, x: Variable, tensor: TensorParallel): Entered {
  const { memory } = tape.pool;
  if (!tensor.sequence) {
    const y: Variable = { value: x.value, needsGradient: true, gradient: undefined };
    tape.record({
      input: () => {
        const dy = gradientOf(y);
        tensor.group.allReduce(view(memory, dy)).wait();
        tape.give(x, dy);
      },
    });
    return { y, drop: () => {} };
  }
  const y = gathered(tape, x.value, tensor);
  tape.record({
    input: () => tape.give(x, scattered(tape, gradientOf(y), tensor)),
    // Weight halves gather it once more.
    reads: [x],
    spent: () => [y.value, y.gradient],
  });
  return { y, drop: () => tape.drop(y, () => gathered(tape, x.value, tensor).value) };
}

/**
 * After the second product, whose parts x [rows, width] are summed, and to whose sum the bias is
 * added once; with sequence parallelism each rank keeps [rows / ranks, width] of it.
 */
export function leaveTensorParallel(
  tape: Tape,
  x: Variable,
  tensor: TensorParallel,
  bias?: Parameter,
): Variable {
  const { kernels } = tape;
  const { memory } = tape.pool;
  if (!tensor.sequence) tensor.group.allReduce(view(memory, x.value)).wait();
  const value = tensor.sequence ? scattered(tape, x.value, tensor) : x.value;
  // The parts are not read again.
  if (tensor.sequence) tape.free(x.value);
  const y: Variable = { value, needsGradient: true, gradient: undefined };
  const [rows, width] = matrixDims(value);
  if (bias !== undefined) kernels.addBias(value.pointer, bias.value.pointer, rows, width);
  tape.record({
    input: () => {
      const dy = gradientOf(y);
      tape.give(x, tensor.sequence ? gathered(tape, dy, tensor).value : dy);
    },
    ...(bias !== undefined &&
      bias.frozen !== true && {
        weight: () => {
          const dy = gradientOf(y).pointer;
          addTo(tape, bias, (gradient) => kernels.biasGradient(dy, gradient, rows, width));
        },
      }),
    // Without sequence parallelism x has the same value and gradient, which its product keeps.
    spent: () => (tensor.sequence ? [y.value] : []),
    kept: () => (tensor.sequence ? [y.gradient] : []),
  });
  return y;
}

/** The rows of all ranks, in order of rank. */
function gathered(tape: Tape, part: Tensor, { group }: TensorParallel): Variable {
  const [rows, width] = matrixDims(part);
  const all = tape.variable([rows * group.ranks, width]);
  const { memory } = tape.pool;
  group.allGather(view(memory, part), view(memory, all.value)).wait();
  return all;
}

/** This rank's rows of the sum over the ranks. */
function scattered(tape: Tape, parts: Tensor, { group }: TensorParallel): Tensor {
  const [rows, width] = matrixDims(parts);
  const own = tape.allocate([rows / group.ranks, width]);
  const { memory } = tape.pool;
  group.reduceScatter(view(memory, parts), view(memory, own)).wait();
  return own;
}
