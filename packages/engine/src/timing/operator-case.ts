/**
 * An operator of a plan as the engine would run it, for micro-timing: by the same code, on operands
 * of its shape. One case covers a forward operator and its gradients.
 */
import type { Operator, Pass } from "@trireme/workload";
import { gelu, swiglu } from "../operators/activation.ts";
import { attention } from "../operators/attention.ts";
import { joinColumns } from "../operators/column-parts.ts";
import { crossEntropy } from "../operators/cross-entropy.ts";
import { embedding } from "../operators/embedding.ts";
import { linear } from "../operators/linear.ts";
import { layerNorm, rmsNorm } from "../operators/norm.ts";
import { residual } from "../operators/residual.ts";
import { Router } from "../experts/router.ts";
import { nf4Block, nf4Codebook } from "../packed/nf4.ts";
import { dynamicMap } from "../packed/packed-scales.ts";
import { ProductFormat } from "../tape/product-format.ts";
import type { Products } from "../tape/products.ts";
import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import { Operands, type TimingPlace } from "./operands.ts";

/** Records one forward on the tape and returns its output. */
type OperatorCase = (tape: Tape) => Variable;

/** A forward operator ready to be timed. */
export interface TimedOperator {
  readonly run: OperatorCase;
  /** What the operator before it has just written, so that it lies in the caches. */
  readonly input: Tensor;
  /** For the tape that it is run on. */
  readonly products: Products;
  /** Gives the operands back. */
  readonly free: () => void;
}

/** The case of a forward operator; the embedding's input are its tokens, too small to matter. */
export function timedOperator(operator: Operator, place: TimingPlace): TimedOperator {
  const operands = new Operands(place);
  const run = forwardCase(operator, operands);
  return {
    run,
    input: operands.first,
    products: productsOf(operator, place.narrow),
    free: () => operands.free(),
  };
}

/** How an operator's products are made: their form names what their operands are rounded to. */
function productsOf({ form }: Operator, narrow: boolean): Products {
  const storage = narrow ? "bf16" : undefined;
  if (form.startsWith("fp8")) {
    return { format: new ProductFormat({ kind: "fp8", scaling: "current" }), storage };
  }
  return { format: narrow ? new ProductFormat({ kind: "bf16" }) : undefined, storage };
}

function forwardCase({ kind, form, shape }: Operator, operands: Operands): OperatorCase {
  const fresh = (value: Tensor): Variable => ({ value, needsGradient: true, gradient: undefined });
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = shape;
  switch (kind) {
    case "gemm": {
      const x = operands.tensor([b, d]);
      const [weight, bias] = [operands.matrix([d, c]), operands.vector(c)];
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
      const [gain, bias] = [operands.vector(b), operands.vector(b)];
      if (form === "rmsnorm") return (tape) => rmsNorm(tape, fresh(x), gain, { epsilon: 1e-5 });
      return (tape) => layerNorm(tape, fresh(x), gain, bias, { epsilon: 1e-5 });
    }
    case "activation": {
      if (form === "gelu") {
        const x = operands.tensor([a, b]);
        return (tape) => gelu(tape, fresh(x));
      }
      if (form === "expand-int8" || form === "expand-nf4") return expansion(operands, form, [b, a]);
      const x = operands.tensor([a, 2 * b]);
      return (tape) => swiglu(tape, fresh(x));
    }
    case "add": {
      if (form === "latent") {
        // Heads are put together from parts: each number is copied, and its gradient back.
        const parts = operands.tensor([a, b]);
        return (tape) => joinColumns(tape, [fresh(parts)]);
      }
      const [x, branch] = [operands.tensor([a, b]), operands.tensor([a, b])];
      return (tape) => residual(tape, fresh(x), fresh(branch));
    }
    case "embedding": {
      const ids = operands.ids(a, c);
      const table = operands.matrix([c, b]);
      const positions = operands.matrix([a, b]);
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
    case "grouped-gemm": {
      // Even load: every expert its share of the rows.
      const x = operands.tensor([Math.max(1, Math.round(b / a)), d]);
      const weights = Array.from({ length: a }, () => operands.matrix([d, c]));
      return (tape) => together(tape, (own) => weights.map((w) => linear(own, fresh(x), w)));
    }
    case "routing": {
      const logits = operands.tensor([a, b]);
      return (tape) => routing(tape, fresh(logits), b, c);
    }
    case "permutation": {
      const x = operands.tensor([a, b]);
      const slots = operands.ids(a, a);
      return (tape) => permutation(tape, fresh(x), slots);
    }
    default:
      throw new Error(`${kind} has no forward that this package runs`);
  }
}

/** A matrix [outputs, inputs] in fewer bits, written out, and again in backward. */
function expansion(
  operands: Operands,
  form: "expand-int8" | "expand-nf4",
  dims: readonly [outputs: number, inputs: number],
): OperatorCase {
  const [outputs, inputs] = dims;
  const size = outputs * inputs;
  // Four codes to a float of the operand; bits of any kind are codes.
  const codes = operands.wide([Math.ceil(size / (form === "expand-nf4" ? 8 : 4))]).pointer;
  const blocks = Math.ceil(size / nf4Block);
  const scales = operands.wide([Math.max(outputs, blocks)]).pointer;
  const tables = operands.wide([Math.max(nf4Codebook.length, dynamicMap.length)]).pointer;
  const groups = operands.wide([Math.ceil(blocks / 256)]).pointer;
  return (tape) => {
    const { kernels } = tape;
    const write = (out: number): void => {
      if (form === "expand-int8") {
        kernels.unpackInt8(codes, scales, out, outputs, inputs);
        return;
      }
      kernels.unpackScales(codes, 0, groups, 0, tables, scales, blocks);
      kernels.unpackNf4(codes, scales, tables, out, size);
    };
    const y = tape.variable(dims);
    write(y.value.pointer);
    tape.record({ input: () => write(y.value.pointer) });
    return y;
  };
}

/** Outputs of one shape as one, whose gradient each of them gets. */
function together(tape: Tape, run: (tape: Tape) => readonly Variable[]): Variable {
  const outputs = run(tape);
  const y: Variable = { value: outputs.at(-1)!.value, needsGradient: true, gradient: undefined };
  tape.record({
    input: () => {
      for (const output of outputs) tape.give(output, gradientOf(y));
    },
  });
  return y;
}

/** The choice of experts for logits [T, E], and the gradient of these. */
function routing(tape: Tape, logits: Variable, count: number, active: number): Variable {
  const tokens = logits.value.dims[0]!;
  const experts = { count, active, ffn: 1, sharedFfn: 0, sharedGate: false, denseLayers: 0 };
  const router = new Router(
    { ...experts, every: 1, routerBias: false, selectionBias: false },
    {},
    { load: new Float32Array(count), bias: undefined },
    undefined,
    tokens,
  );
  const all = view(tape.pool.memory, logits.value);
  const routed = router.route(all);
  const y: Variable = { value: logits.value, needsGradient: true, gradient: undefined };
  tape.record({
    input: () => {
      const gradient = tape.allocate(logits.value.dims);
      const weights = new Float32Array(tokens * active).fill(1e-3);
      view(tape.pool.memory, gradient).set(router.gradient(all, routed, weights));
      tape.give(logits, gradient);
    },
  });
  return y;
}

/** Rows [T, width] to other places, and their gradients back. */
function permutation(tape: Tape, x: Variable, slots: number): Variable {
  const [rows = 0, width = 0] = x.value.dims;
  const move = (from: Tensor): Tensor => {
    const to = tape.allocate(x.value.dims);
    tape.kernels.spreadRows(from.pointer, slots, 0, to.pointer, rows, 1, width);
    return to;
  };
  const y: Variable = { value: move(x.value), needsGradient: true, gradient: undefined };
  tape.record({
    input: () => {
      tape.give(x, move(gradientOf(y)));
    },
  });
  return y;
}

/** The key of a forward operator's gradient, as `workload` names it; undefined if it has none. */
export function gradientOperator(
  operators: readonly Operator[],
  { kind, form, shape }: Operator,
  pass: Pass,
): Operator | undefined {
  const turned = turnedShape(kind, pass, shape);
  const name = turned.join();
  return operators.find(
    (o) => o.kind === kind && o.form === form && o.pass === pass && o.shape.join() === name,
  );
}

/** The shape of a gradient's product; other gradients have their forward's. */
function turnedShape(
  kind: Operator["kind"],
  pass: Pass,
  shape: readonly number[],
): readonly number[] {
  const [batch = 0, m = 0, n = 0, k = 0] = shape;
  if (kind !== "gemm" && kind !== "grouped-gemm") return shape;
  if (pass === "input-gradient") return [batch, m, k, n];
  // A group's rows are its inner dimension.
  return kind === "gemm" ? [batch, n, k, m] : [batch, batch * n, k, m / batch];
}
