/** What the embedding, the layers and the head of a stage do. */
import type { LayerForm } from "@trireme/workload";
import { matrixAdapters } from "../parameters/adapters.ts";
import { biasColumns } from "../parameters/expert-specs.ts";
import { latentAttention } from "./latent-attention.ts";
import { gelu, swiglu } from "../operators/activation.ts";
import { type AttentionShape, attention } from "../operators/attention.ts";
import { addBiasColumns } from "../operators/bias-columns.ts";
import { embedding } from "../operators/embedding.ts";
import { mixtureOfExperts } from "../operators/experts.ts";
import { normHeads } from "../operators/head-norm.ts";
import { linear } from "../operators/linear.ts";
import { addLowRank } from "../operators/low-rank.ts";
import { layerNorm, rmsNorm } from "../operators/norm.ts";
import { residual } from "../operators/residual.ts";
import { sigmoidGate } from "../operators/sigmoid-gate.ts";
import { enterTensorParallel, leaveTensorParallel } from "../operators/tensor-parallel.ts";
import { type Parallel, undivided } from "../layout/parallel.ts";
import { alone } from "../parameters/spec-parts.ts";
import type { StageInput, StageOptions } from "./stage-options.ts";
import type { Parameter, Tape, Variable } from "../tape/tape.ts";

/** A layer of the stage. */
interface Layer {
  /** Where the names of its tensors begin. */
  readonly name: string;
  readonly form: LayerForm;
  /** Its attention is forgotten, and computed again in backward. */
  readonly drops: boolean;
}

/** A stage on one microbatch. */
export class StageRun {
  readonly #options: StageOptions;
  readonly #input: StageInput;
  readonly #parallel: Parallel;

  constructor(options: StageOptions, input: StageInput) {
    this.#options = options;
    this.#input = input;
    this.#parallel = options.parallel ?? undivided;
  }

  embed(tape: Tape): Variable {
    const { model } = this.#options;
    const { tokens, batch, pieces } = this.#input;
    const { tensor } = this.#parallel;
    const table = this.#get("wte.weight");
    // Ranks that share out the vocabulary add up their rows; one of them adds the positions.
    const first = (tensor?.group.rank ?? 0) === 0;
    const learns = first || tensor?.sequence !== true;
    const learned = model.position === "learned";
    const positions = learned ? { table: this.#get("wpe.weight"), adds: first, learns } : undefined;
    const x = embedding(tape, tokens, batch, pieces, table, positions);
    return tensor === undefined ? x : leaveTensorParallel(tape, x, tensor);
  }

  layer(tape: Tape, layer: Layer, x: Variable): Variable {
    const { name } = layer;
    if (this.#options.model.block === "parallel") return this.#parallelBlock(tape, layer, x);
    const attended = this.#attention(tape, layer, this.#norm(tape, `${name}.ln_1`, x));
    const middle = residual(tape, x, attended);
    tape.rest();
    const normed = this.#norm(tape, `${name}.ln_2`, middle);
    return residual(tape, middle, this.#feedForward(tape, layer, normed));
  }

  /** Both branches read the same residual (Wang, Komatsuzaki, GPT-J, 2021). */
  #parallelBlock(tape: Tape, layer: Layer, x: Variable): Variable {
    const { name } = layer;
    const first = this.#norm(tape, `${name}.ln_1`, x);
    const { sharedNorm } = this.#options.model;
    const second = sharedNorm ? first : this.#norm(tape, `${name}.ln_2`, x);
    const attended = this.#attention(tape, layer, first);
    const both = residual(tape, attended, this.#feedForward(tape, layer, second));
    return residual(tape, x, both);
  }

  #attention(tape: Tape, { name, form, drops }: Layer, x: Variable): Variable {
    const { model } = this.#options;
    const ranks = this.#parallel.tensor?.group.ranks ?? 1;
    const window = form.windowed ? (model.window?.size ?? 0) : 0;
    if (model.latent !== undefined) {
      const { batch, pieces } = this.#input;
      const get = (part: string): Parameter => this.#get(`${name}.attn.${part}`);
      const options = { model, parallel: this.#parallel, get, batch, pieces, window };
      const mixed = latentAttention(tape, x, options);
      const attended = this.#leave(tape, mixed.y, `${name}.attn.o_proj`, false);
      if (drops) mixed.drop();
      return attended;
    }
    const shape = {
      ...this.#input,
      heads: model.heads / ranks,
      kvHeads: model.kvHeads / ranks,
      headDim: model.headDim,
      rotaryBase: model.position === "rotary" ? model.rotaryBase : undefined,
      rotaryDim: model.headDim * model.rotaryFraction,
      window,
    };
    const made = this.#enter(tape, x, `${name}.attn.c_attn`, model.qkvBias);
    const qkv = model.qkNorm === "head" ? this.#normHeads(tape, name, made, shape) : made;
    const { y: mixed, drop } = attention(tape, qkv, shape, this.#parallel.context);
    const attended = this.#leave(tape, mixed, `${name}.attn.c_proj`, model.outputBias);
    if (drops) drop();
    return attended;
  }

  #normHeads(tape: Tape, name: string, qkv: Variable, shape: AttentionShape): Variable {
    const [query, key] = ["q_norm", "k_norm"].map((of) => this.#get(`${name}.attn.${of}.weight`));
    const options = { epsilon: this.#options.model.normEpsilon };
    return normHeads(tape, qkv, shape, { query: query!, key: key! }, options);
  }

  #feedForward(tape: Tape, { name, form }: Layer, x: Variable): Variable {
    if (!form.experts) return this.#dense(tape, `${name}.mlp`, x);
    const { experts, model } = this.#options;
    if (experts === undefined) throw new Error(`${name} has experts, but the stage got no group`);
    const router = this.#get(`${name}.mlp.router.weight`);
    const { count, sharedFfn, sharedGate, routerBias } = model.experts!;
    const bias = routerBias ? this.#get(`${name}.mlp.router.bias`) : undefined;
    const logits = linear(tape, x, router, { bias, exact: true });
    const { group } = experts;
    const first = group === undefined ? 0 : (group.rank * count) / group.ranks;
    const mixed = mixtureOfExperts(tape, x, logits, experts.router(name), experts, (index, rows) =>
      this.#expert(tape, `${name}.mlp.experts.${first + index}`, rows),
    );
    if (sharedFfn === 0) return mixed;
    const shared = this.#dense(tape, `${name}.mlp.shared`, x);
    if (!sharedGate) return residual(tape, mixed, shared);
    const gate = linear(tape, x, this.#get(`${name}.mlp.shared_gate.weight`), { exact: true });
    return residual(tape, mixed, sigmoidGate(tape, shared, gate));
  }

  /** A feed-forward block that the tensor-parallel ranks share out. */
  #dense(tape: Tape, name: string, x: Variable): Variable {
    const inner = this.#enter(tape, x, `${name}.c_fc`, this.#options.model.bias);
    return this.#leave(
      tape,
      this.#activation(tape, inner),
      `${name}.c_proj`,
      this.#options.model.bias,
    );
  }

  /** A feed-forward block on rows of its own: the whole result, or this rank's part of the sum. */
  #expert(tape: Tape, name: string, x: Variable): Variable {
    const { model, experts } = this.#options;
    const bias = (part: string): Parameter | undefined =>
      model.bias ? this.#get(`${name}.${part}.bias`) : undefined;
    const inner = linear(tape, x, this.#get(`${name}.c_fc.weight`), { bias: bias("c_fc") });
    const y = linear(tape, this.#activation(tape, inner), this.#get(`${name}.c_proj.weight`));
    const last = bias("c_proj");
    if (last !== undefined) {
      addBiasColumns(tape, y, last, biasColumns(model.hidden, experts?.split ?? alone));
    }
    return y;
  }

  #activation(tape: Tape, x: Variable): Variable {
    return this.#options.model.activation === "swiglu" ? swiglu(tape, x) : gelu(tape, x);
  }

  /** Logits: all of them, or of the rank's part of the vocabulary. */
  head(tape: Tape, x: Variable, tied: boolean): Variable {
    const { tensor } = this.#parallel;
    const last = this.#norm(tape, "ln_f", x, true);
    const weight = this.#get(tied ? "wte.weight" : "lm_head.weight");
    const bias = this.#options.model.headBias ? this.#get("lm_head.bias") : undefined;
    const options = { bias, transposed: true, exact: true, atOnce: true };
    if (tensor === undefined) return linear(tape, last, weight, options);
    const { y: all, drop, behind } = enterTensorParallel(tape, last, tensor);
    const logits = linear(tape, all, weight, { ...options, behind });
    drop();
    return logits;
  }

  /** The first product of a pair: its columns are shared out. */
  #enter(tape: Tape, x: Variable, name: string, biased: boolean): Variable {
    const { tensor } = this.#parallel;
    const weight = this.#get(`${name}.weight`);
    const bias = biased ? this.#get(`${name}.bias`) : undefined;
    if (tensor === undefined) {
      return this.#adapted(tape, name, x, linear(tape, x, weight, { bias }));
    }
    const { y: all, drop, behind } = enterTensorParallel(tape, x, tensor);
    const product = this.#adapted(tape, name, all, linear(tape, all, weight, { bias, behind }));
    drop();
    return product;
  }

  /** The second product of a pair: its rows are shared out. */
  #leave(tape: Tape, x: Variable, name: string, biased: boolean): Variable {
    const { tensor } = this.#parallel;
    const weight = this.#get(`${name}.weight`);
    const bias = biased ? this.#get(`${name}.bias`) : undefined;
    if (tensor === undefined) {
      return this.#adapted(tape, name, x, linear(tape, x, weight, { bias }));
    }
    // Adapters add to each rank's part of the sum.
    const part = this.#adapted(tape, name, x, linear(tape, x, weight));
    return leaveTensorParallel(tape, part, tensor, bias);
  }

  /** y with what the adapters of this matrix add to it. */
  #adapted(tape: Tape, name: string, x: Variable, y: Variable): Variable {
    const { model } = this.#options;
    const ranks = this.#parallel.tensor?.group.ranks ?? 1;
    for (const { down, up, columns } of matrixAdapters(model, name, ranks)) {
      addLowRank(tape, x, y, this.#get(down), this.#get(up), columns);
    }
    return y;
  }

  #norm(tape: Tape, name: string, x: Variable, atOnce = false): Variable {
    const { model } = this.#options;
    const gain = this.#get(`${name}.weight`);
    const options = { epsilon: model.normEpsilon, atOnce };
    if (model.norm === "rmsnorm") return rmsNorm(tape, x, gain, options);
    return layerNorm(tape, x, gain, this.#get(`${name}.bias`), options);
  }

  #get(name: string): Parameter {
    return this.#options.parameters.get(name);
  }
}
