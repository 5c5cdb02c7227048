/**
 * The conjugate operators around a pair of products that tensor-parallel ranks share out (Shoeybi et
 * al., Megatron-LM, 2019, section 3; with sequence parallelism Korthikanti et al., 2022, section 4.2).
 * Entering, each rank needs all tokens; leaving, each has a part of the sum.
 */
import type { Work } from "@trireme/collectives";
import { addTo } from "../tape/add-gradient.ts";
import type { TensorParallel } from "../layout/parallel.ts";
import { type Parameter, type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { type Tensor, matrixDims, view } from "../memory/tensor.ts";

/** What the first product reads, and a way to forget it until a backward gathers it once more. */
export interface Entered {
  readonly y: Variable;
  readonly drop: () => void;
  /** What its backward can run behind its products; undefined where the plan does not. */
  readonly behind?: BehindProducts;
}

/**
 * Collectives of a backward that start before a product and are waited for after it (Megatron-LM's
 * asynchronous all-reduce and sequence-parallel overlap): the input is gathered once more behind the
 * product for its gradient, and that gradient is summed behind the weight's.
 */
export interface BehindProducts {
  /** Starts to gather the input, if it was dropped; `Tape.valueOf` waits for it. */
  readonly gather: () => void;
  /** Starts to sum the input's gradient, complete by then; the backward before waits for it. */
  readonly reduce: () => void;
}

/**
 * Before the first product: the identity, whose gradient is summed; with sequence parallelism
 * x [rows / ranks, width] is gathered to [rows, width] and its gradient reduced and scattered.
 */
export function enterTensorParallel(tape: Tape, x: Variable, tensor: TensorParallel): Entered {
  return tensor.sequence ? enterGathered(tape, x, tensor) : enterWhole(tape, x, tensor);
}

function enterWhole(tape: Tape, x: Variable, { group, overlaps }: TensorParallel): Entered {
  const { memory } = tape.pool;
  const y: Variable = { value: x.value, needsGradient: true, gradient: undefined };
  const sum = once(() => group.allReduce(view(memory, gradientOf(y))));
  tape.record({
    input: () => {
      sum.take().wait();
      tape.give(x, gradientOf(y));
    },
  });
  const behind = { gather: () => {}, reduce: sum.start };
  return { y, drop: () => {}, ...(overlaps && { behind }) };
}

function enterGathered(tape: Tape, x: Variable, tensor: TensorParallel): Entered {
  const again = once(() => gathering(tape, x.value, tensor));
  const sum = once(() => scattering(tape, gradientOf(y), tensor));
  const y = arrived(gathering(tape, x.value, tensor));
  tape.record({
    input: () => tape.give(x, arrived(sum.take())),
    // Weight halves gather it once more.
    reads: [x],
    spent: () => [y.value, y.gradient],
  });
  const behind = {
    gather: () => {
      if (y.restore !== undefined) again.start();
    },
    reduce: sum.start,
  };
  return {
    y,
    drop: () => tape.drop(y, () => arrived(again.take()).value),
    ...(tensor.overlaps && { behind }),
  };
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
  const value = tensor.sequence ? arrived(scattering(tape, x.value, tensor)) : x.value;
  // The parts are not read again.
  if (tensor.sequence) tape.free(x.value);
  const y: Variable = { value, needsGradient: true, gradient: undefined };
  const [rows, width] = matrixDims(value);
  if (bias !== undefined) kernels.addBias(value.pointer, bias.value.pointer, rows, width);
  tape.record({
    input: () => {
      const dy = gradientOf(y);
      tape.give(x, tensor.sequence ? arrived(gathering(tape, dy, tensor)).value : dy);
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

/** What a collective makes, whole when its work is over. */
interface Coming<T> {
  readonly made: T;
  readonly work: Work;
}

function arrived<T>({ made, work }: Coming<T>): T {
  work.wait();
  return made;
}

/** A call that may be started ahead of whoever takes it, or else starts then. */
function once<T>(call: () => T): { readonly start: () => void; readonly take: () => T } {
  let started: T | undefined;
  return {
    start: () => {
      started ??= call();
    },
    take: () => {
      const taken = started ?? call();
      started = undefined;
      return taken;
    },
  };
}

/** The rows of all ranks, in order of rank. */
function gathering(tape: Tape, part: Tensor, { group }: TensorParallel): Coming<Variable> {
  const [rows, width] = matrixDims(part);
  const all = tape.variable([rows * group.ranks, width]);
  const { memory } = tape.pool;
  return { made: all, work: group.allGather(view(memory, part), view(memory, all.value)) };
}

/** This rank's rows of the sum over the ranks. */
function scattering(tape: Tape, parts: Tensor, { group }: TensorParallel): Coming<Tensor> {
  const [rows, width] = matrixDims(parts);
  const own = tape.allocate([rows / group.ranks, width]);
  const { memory } = tape.pool;
  return { made: own, work: group.reduceScatter(view(memory, parts), view(memory, own)) };
}
