/** Checks gradients that a tape takes against differences of the loss: one central difference a value. */
import { createRng } from "@trireme/core";
import { createKernels } from "../src/kernels/kernels.ts";
import { Pool } from "../src/memory/pool.ts";
import { createRankMemory } from "../src/memory/rank-memory.ts";
import { type Parameter, Tape, type Variable } from "../src/tape/tape.ts";
import { type Tensor, view } from "../src/memory/tensor.ts";

/** A rank's memory with an input and parameters that a layer under test works on. */
export class Bench {
  readonly pool: Pool;
  readonly kernels: ReturnType<typeof createKernels>;
  readonly inputs: Variable[] = [];
  readonly parameters: Parameter[] = [];
  readonly #rng = createRng(11);

  constructor() {
    const { memory, base } = createRankMemory();
    this.pool = new Pool(memory, base);
    this.kernels = createKernels(memory);
  }

  values(tensor: Tensor): Float32Array {
    return view(this.pool.memory, tensor);
  }

  tensor(dims: readonly number[], spread = 1): Tensor {
    const tensor = this.pool.allocate(dims);
    const values = this.values(tensor);
    for (let i = 0; i < values.length; i++) values[i] = this.#rng.normal() * spread;
    return tensor;
  }

  input(dims: readonly number[]): Variable {
    const variable: Variable = {
      value: this.tensor(dims),
      needsGradient: true,
      gradient: undefined,
    };
    this.inputs.push(variable);
    return variable;
  }

  parameter(dims: readonly number[], spread = 0.5): Parameter {
    const value = this.tensor(dims, spread);
    const { pointer, size } = this.pool.allocate(dims);
    const gradient = { pointer, size, each: 4 } as const;
    this.gradientOf(gradient).fill(0);
    const parameter = { name: `p${this.parameters.length}`, dims, value, gradient };
    this.parameters.push(parameter);
    return parameter;
  }

  gradientOf({ pointer, size }: Parameter["gradient"]): Float32Array {
    return new Float32Array(this.pool.memory.buffer, pointer, size);
  }

  ids(values: readonly number[]): number {
    const pointer = this.pool.allocateBytes(values.length * 4);
    new Int32Array(this.pool.memory.buffer, pointer, values.length).set(values);
    return pointer;
  }

  /**
   * The largest difference between a taken gradient and the difference quotient of
   * Σ output·weights, relative to the largest gradient of its tensor.
   */
  worstError(forward: (tape: Tape) => Variable, halves: "together" | "apart" = "together"): number {
    const run = (): { tape: Tape; output: Variable } => {
      for (const input of this.inputs) input.gradient = undefined;
      const tape = new Tape(this.kernels, this.pool);
      return { tape, output: forward(tape) };
    };
    const { tape, output } = run();
    const rng = createRng(5);
    const weights = Float32Array.from({ length: output.value.size }, () => rng.normal());
    output.gradient = tape.allocate(output.value.dims);
    this.values(output.gradient).set(weights);
    if (halves === "apart") {
      tape.backwardInput();
      tape.backwardWeight();
    } else {
      tape.backward();
    }
    const taken = [
      ...this.inputs.map((x) => [x.value, this.values(x.gradient!).slice()] as const),
      ...this.parameters.map((p) => [p.value, this.gradientOf(p.gradient).slice()] as const),
    ];
    const loss = (): number => {
      const again = run();
      const values = this.values(again.output.value);
      let sum = 0;
      for (let i = 0; i < values.length; i++) sum += values[i]! * weights[i]!;
      again.tape.release();
      return sum;
    };
    let worst = 0;
    for (const [tensor, gradient] of taken) {
      worst = Math.max(worst, this.#tensorError(this.values(tensor), gradient, loss));
    }
    return worst;
  }

  #tensorError(values: Float32Array, gradient: Float32Array, loss: () => number): number {
    const scale = gradient.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-3);
    const step = 2 ** -7;
    let worst = 0;
    for (let i = 0; i < values.length; i += Math.max(1, Math.floor(values.length / 40))) {
      const x = values[i]!;
      const quotient = (h: number): number => {
        values[i] = x + h;
        const up = loss();
        values[i] = x - h;
        const down = loss();
        values[i] = x;
        return (up - down) / (2 * h);
      };
      // Richardson's extrapolation removes the cubic term, so that the step can stay large in f32.
      const estimate = (4 * quotient(step) - quotient(2 * step)) / 3;
      worst = Math.max(worst, Math.abs(estimate - gradient[i]!) / scale);
    }
    return worst;
  }
}
