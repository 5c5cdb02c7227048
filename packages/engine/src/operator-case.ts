/**
 * An operator of a plan as the engine would run it, for micro-timing: by the same code, on operands
 * of its shape. One case covers a forward operator and its gradients.
 */
import { createRng } from "@trireme/core";
import type { Operator, Pass } from "@trireme/workload";
import { gelu, swiglu } from "./operators/activation.ts";
import { attention } from "./operators/attention.ts";
import { crossEntropy } from "./operators/cross-entropy.ts";
import { embedding } from "./operators/embedding.ts";
import { linear } from "./operators/linear.ts";
import { layerNorm, rmsNorm } from "./operators/norm.ts";
import { residual } from "./operators/residual.ts";
import type { Pool } from "./pool.ts";
import type { Parameter, Tape, Variable } from "./tape.ts";
import { type Tensor, view } from "./tensor.ts";

/** Records one forward on the tape and returns its output. */
type OperatorCase = (tape: Tape) => Variable;

/** Operands that are not tensors of the case itself. */
class Operands {
  readonly #pool: Pool;
  readonly #rng = createRng(1);
  /** Everything allocated, to be freed when the case has been timed. */
  readonly tensors: Tensor[] = [];

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  tensor(dims: readonly number[]): Tensor {
    const tensor = this.#pool.allocate(dims);
    this.tensors.push(tensor);
    const values = view(this.#pool.memory, tensor);
    for (let i = 0; i < values.length; i++) values[i] = this.#rng.float() - 0.5;
    return tensor;
  }

  parameter(dims: readonly number[]): Parameter {
    return { name: "timed", value: this.tensor(dims), gradient: this.tensor(dims) };
  }

  /** Pointer to `count` random i32 in [0, below). */
  ids(count: number, below: number): number {
    const tensor = this.#pool.allocate([count]);
    this.tensors.push(tensor);
    const ids = new Int32Array(this.#pool.memory.buffer, tensor.pointer, count);
    for (let i = 0; i < count; i++) ids[i] = this.#rng.integer(below);
    return tensor.pointer;
  }
}

/** A forward operator ready to be timed. */
export interface TimedOperator {
  readonly run: OperatorCase;
  /** What the operator before it has just written, so that it lies in the caches. */
  readonly input: Tensor;
  /** Gives the operands back. */
  readonly free: () => void;
}

/** The case of a forward operator; the embedding's input are its tokens, too small to matter. */
export function timedOperator(operator: Operator, pool: Pool): TimedOperator {
  const operands = new Operands(pool);
  const run = forwardCase(operator, operands);
  return {
    run,
    input: operands.tensors[0]!,
    free: () => {
      for (const tensor of operands.tensors) pool.free(tensor);
    },
  };
}

function forwardCase({ kind, form, shape }: Operator, operands: Operands): OperatorCase {
  const fresh = (value: Tensor): Variable => ({ value, needsGradient: true, gradient: undefined });
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = shape;
  switch (kind) {
    case "gemm": {
      const x = operands.tensor([b, d]);
      const [weight, bias] = [operands.parameter([d, c]), operands.parameter([c])];
      return (tape) => linear(tape, fresh(x), weight, { bias });
    }
    case "attention": {
      const qkv = operands.tensor([a * d, (b + 2 * c) * e]);
      const sizes = { batch: a, heads: b, kvHeads: c, headDim: e, window: 0 };
      const attended = { ...sizes, pieces: [{ start: 0, count: d }], rotaryBase: undefined };
      return (tape) => attention(tape, fresh(qkv), attended).y;
    }
    case "norm": {
      const x = operands.tensor([a, b]);
      const [gain, bias] = [operands.parameter([b]), operands.parameter([b])];
      if (form === "rmsnorm") return (tape) => rmsNorm(tape, fresh(x), gain, 1e-5);
      return (tape) => layerNorm(tape, fresh(x), gain, bias, 1e-5);
    }
    case "activation": {
      if (form === "gelu") {
        const x = operands.tensor([a, b]);
        return (tape) => gelu(tape, fresh(x));
      }
      const x = operands.tensor([a, 2 * b]);
      return (tape) => swiglu(tape, fresh(x));
    }
    case "add": {
      const [x, branch] = [operands.tensor([a, b]), operands.tensor([a, b])];
      return (tape) => residual(tape, fresh(x), fresh(branch));
    }
    case "embedding": {
      const ids = operands.ids(a, c);
      const table = operands.parameter([c, b]);
      const positions = operands.parameter([a, b]);
      return (tape) =>
        embedding(tape, ids, 1, [{ start: 0, count: a }], table, {
          table: positions,
          adds: true,
          learns: true,
        });
    }
    case "loss": {
      const logits = operands.tensor([a, b]);
      const ids = operands.ids(a, b);
      return (tape) => {
        const x = fresh(logits);
        crossEntropy(tape, x, ids, 1 / a);
        return x;
      };
    }
    default:
      throw new Error(`${kind} has no forward that this package runs`);
  }
}

/** The key of a forward operator's gradient, as `workload` names it; undefined if it has none. */
export function gradientOperator(
  operators: readonly Operator[],
  { kind, form, shape }: Operator,
  pass: Pass,
): Operator | undefined {
  const [batch, m, n, k] = shape;
  const turned =
    kind !== "gemm" ? shape : pass === "input-gradient" ? [batch, m, k, n] : [batch, n, k, m];
  const name = turned.join();
  return operators.find(
    (o) => o.kind === kind && o.form === form && o.pass === pass && o.shape.join() === name,
  );
}
