/**
 * The trained tensors of one rank: values, gradients and the optimizer's two moments, each kind in
 * one contiguous block, so that gradients are reduced over data-parallel ranks in one piece.
 * A tensor's initial values depend on the seed and its global name alone: every layout of the same
 * model begins with the same weights.
 */
import { createRng, hash32 } from "@trireme/core";
import type { Pool } from "./pool.ts";
import type { Parameter } from "./tape.ts";
import { type Tensor, elements, view } from "./tensor.ts";

/** A tensor of the model by its global name. */
export interface ParameterSpec {
  readonly name: string;
  readonly dims: readonly number[];
  /** Standard deviation of its first values around 0, or the constant they all have. */
  readonly initial: { readonly deviation: number } | { readonly constant: number };
  /** Whether weight decay applies: to matrices and embeddings, not to biases and norms. */
  readonly decays: boolean;
}

/** A parameter with the optimizer's state beside it. */
export interface TrainedParameter extends Parameter {
  readonly decays: boolean;
  /** Running mean of the gradient. */
  readonly firstMoment: Tensor;
  /** Running mean of the squared gradient. */
  readonly secondMoment: Tensor;
}

/** Elements between the beginnings of neighbours: whole cache lines. */
const lineElements = 16;

export class ParameterSet {
  /** In the order of the specs. */
  readonly list: readonly TrainedParameter[];
  /** Every gradient in one piece; the gaps between parameters stay zero. */
  readonly gradients: Tensor;
  readonly #byName: ReadonlyMap<string, TrainedParameter>;

  constructor(pool: Pool, specs: readonly ParameterSpec[], seed: number) {
    const offsets: number[] = [];
    let end = 0;
    for (const spec of specs) {
      offsets.push(end);
      end += Math.ceil(elements(spec.dims) / lineElements) * lineElements;
    }
    const block = (): Tensor => {
      const tensor = pool.allocate([end]);
      view(pool.memory, tensor).fill(0);
      return tensor;
    };
    const values = block();
    const [gradients, first, second] = [block(), block(), block()];
    this.gradients = gradients;
    this.list = specs.map((spec, i) => {
      const at = (whole: Tensor): Tensor => ({
        pointer: whole.pointer + offsets[i]! * 4,
        dims: spec.dims,
        size: elements(spec.dims),
      });
      const value = at(values);
      initialize(view(pool.memory, value), spec, seed);
      return {
        name: spec.name,
        decays: spec.decays,
        value,
        gradient: at(gradients),
        firstMoment: at(first),
        secondMoment: at(second),
      };
    });
    this.#byName = new Map(this.list.map((parameter) => [parameter.name, parameter]));
  }

  /** Trained numbers, padding not counted. */
  get size(): number {
    return this.list.reduce((sum, parameter) => sum + parameter.value.size, 0);
  }

  get(name: string): TrainedParameter {
    const parameter = this.#byName.get(name);
    if (parameter === undefined) throw new Error(`no parameter ${name} on this rank`);
    return parameter;
  }
}

function initialize(values: Float32Array, spec: ParameterSpec, seed: number): void {
  if ("constant" in spec.initial) {
    values.fill(spec.initial.constant);
    return;
  }
  const letters = Array.from(spec.name, (letter) => letter.codePointAt(0)!);
  const rng = createRng(hash32(seed, ...letters));
  for (let i = 0; i < values.length; i++) values[i] = rng.normal() * spec.initial.deviation;
}
