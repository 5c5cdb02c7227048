/** One pipeline stage of a decoder-only transformer, forward; the tape knows the way back. */
import {
  type LayerForm,
  type Model,
  type Plan,
  type Stage,
  layerFormAt,
  layerForms,
} from "@trireme/workload";
import { matrixAdapters } from "./adapters.ts";
import type { Router } from "./experts/router.ts";
import { latentAttention } from "./latent-attention.ts";
import { gelu, swiglu } from "./operators/activation.ts";
import { attention } from "./operators/attention.ts";
import { addBiasColumns } from "./operators/bias-columns.ts";
import { addLowRank } from "./operators/low-rank.ts";
import { embedding } from "./operators/embedding.ts";
import { linear } from "./operators/linear.ts";
import type { ExpertGroup } from "./experts/dispatch.ts";
import { mixtureOfExperts } from "./operators/experts.ts";
import { layerNorm, rmsNorm } from "./operators/norm.ts";
import { recomputed } from "./operators/recomputed.ts";
import { residual } from "./operators/residual.ts";
import { enterTensorParallel, leaveTensorParallel } from "./operators/tensor-parallel.ts";
import { type Parallel, undivided } from "./parallel.ts";
import { alone, biasColumns } from "./parameter-specs.ts";
import type { Range } from "./slice.ts";
import type { Parameter, Tape, Variable } from "./tape.ts";

/** What a stage computes on: token ids in the first one, the previous stage's output in others. */
export interface StageInput {
  readonly batch: number;
  /** The tokens of each sample here, in order. */
  readonly pieces: readonly Range[];
  /** Pointer to batch·tokens i32 token ids; used by the stage that embeds. */
  readonly tokens: number;
  /** [batch·tokens, hidden], or this rank's part of the rows; given to every stage but the first. */
  readonly hidden: Variable | undefined;
}

/** How a stage is run. */
export interface StageOptions {
  readonly model: Model;
  readonly stage: Stage;
  /** The stage's tensors on this rank. */
  readonly parameters: {
    get(name: string): Parameter;
    /** Told of the sections that are at work, in the order of `sectionNames`. */
    readonly sections?: SectionUse | undefined;
  };
  readonly parallel?: Parallel;
  /** What backward computes again. */
  readonly recompute?: Plan["recompute"];
  /** First layers of the stage for which it does; left out, all. */
  readonly recomputeLayers?: number | undefined;
  /** Of layers with experts: where they are, and the layer's router by its name. */
  readonly experts?: ExpertGroup & { readonly router: (layer: string) => Router };
}

/** What happens to the tensors of a section of a stage: the embedding, a layer, the head. */
interface SectionUse {
  /** Before its tensors are read; the next in this direction comes after it. */
  use(section: number, toward: 1 | -1): void;
  /** Before its gradients are added to. */
  open(section: number): void;
  /** When they are complete, of one microbatch. */
  sum(section: number): void;
}

/** How the names of the tensors of each section begin, up to a point; a tied head uses the embedding's table. */
export function sectionNames({ tied }: Model, stage: Stage): string[][] {
  const layers = Array.from({ length: stage.layers }, (_, i) => [`h.${stage.firstLayer + i}`]);
  return [
    ...(stage.embedding ? [["wte", "wpe"]] : []),
    ...layers,
    ...(stage.head ? [["ln_f", tied ? "wte" : "lm_head"]] : []),
  ];
}

/** Runs the stage: to hidden states [rows, hidden], or logits [batch·tokens, vocab] at the head. */
export function stageForward(tape: Tape, options: StageOptions, input: StageInput): Variable {
  const { model, stage, recompute = "none", recomputeLayers = Infinity } = options;
  const run = new StageRun(options, input);
  const { sections } = options.parameters;
  let section = 0;
  let x = stage.embedding
    ? inSection(tape, sections, section++, () => run.embed(tape))
    : input.hidden;
  if (x === undefined) throw new Error(`stage ${stage.stage} got no input`);
  for (let i = 0; i < stage.layers; i++) {
    const name = `h.${stage.firstLayer + i}`;
    const form = layerForms(model)[layerFormAt(model, stage.firstLayer + i)]!;
    const again = i < recomputeLayers ? recompute : "none";
    const layer = (on: Tape, v: Variable): Variable =>
      run.layer(on, { name, form, drops: again === "selective" }, v);
    const before = x;
    x = inSection(tape, sections, section++, () =>
      again === "full" ? recomputed(tape, before, layer) : layer(tape, before),
    );
  }
  if (!stage.head) return x;
  const last = x;
  // The head takes all its gradients in the first half of backward.
  return inSection(tape, sections, section, () => run.head(tape, last, model.tied), true);
}

/** Runs a section, and has its tensors there whenever it or its backward needs them. */
function inSection(
  tape: Tape,
  sections: SectionUse | undefined,
  section: number,
  body: () => Variable,
  atOnce = false,
): Variable {
  if (sections === undefined) return body();
  const sum = (): void => sections.sum(section);
  sections.use(section, 1);
  tape.record(atOnce ? { input: sum } : { weight: sum });
  const y = body();
  const use = (): void => sections.use(section, -1);
  const open = (): void => sections.open(section);
  const both = (): void => {
    use();
    open();
  };
  tape.record(atOnce ? { input: both } : { input: use, weight: open });
  return y;
}

interface Layer {
  /** Where the names of its tensors begin. */
  readonly name: string;
  readonly form: LayerForm;
  /** Its attention is forgotten, and computed again in backward. */
  readonly drops: boolean;
}

class StageRun {
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
      const attended = this.#leave(tape, mixed.y, `${name}.attn.o_proj`);
      if (drops) mixed.drop();
      return attended;
    }
    const qkv = this.#enter(tape, x, `${name}.attn.c_attn`, model.qkvBias);
    const { y: mixed, drop } = attention(
      tape,
      qkv,
      {
        ...this.#input,
        heads: model.heads / ranks,
        kvHeads: model.kvHeads / ranks,
        headDim: model.headDim,
        rotaryBase: model.position === "rotary" ? model.rotaryBase : undefined,
        window,
      },
      this.#parallel.context,
    );
    const attended = this.#leave(tape, mixed, `${name}.attn.c_proj`);
    if (drops) drop();
    return attended;
  }

  #feedForward(tape: Tape, { name, form }: Layer, x: Variable): Variable {
    if (!form.experts) return this.#dense(tape, `${name}.mlp`, x);
    const { experts, model } = this.#options;
    if (experts === undefined) throw new Error(`${name} has experts, but the stage got no group`);
    const router = this.#get(`${name}.mlp.router.weight`);
    const logits = linear(tape, x, router, { exact: true });
    const { count, sharedFfn } = model.experts!;
    const { group } = experts;
    const first = group === undefined ? 0 : (group.rank * count) / group.ranks;
    const mixed = mixtureOfExperts(tape, x, logits, experts.router(name), experts, (index, rows) =>
      this.#expert(tape, `${name}.mlp.experts.${first + index}`, rows),
    );
    if (sharedFfn === 0) return mixed;
    return residual(tape, mixed, this.#dense(tape, `${name}.mlp.shared`, x));
  }

  /** A feed-forward block that the tensor-parallel ranks share out. */
  #dense(tape: Tape, name: string, x: Variable): Variable {
    const inner = this.#enter(tape, x, `${name}.c_fc`, this.#options.model.bias);
    return this.#leave(tape, this.#activation(tape, inner), `${name}.c_proj`);
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
    const options = { transposed: true, exact: true, atOnce: true };
    if (tensor === undefined) return linear(tape, last, weight, options);
    const { y: all, drop } = enterTensorParallel(tape, last, tensor);
    const logits = linear(tape, all, weight, options);
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
    const { y: all, drop } = enterTensorParallel(tape, x, tensor);
    const product = this.#adapted(tape, name, all, linear(tape, all, weight, { bias }));
    drop();
    return product;
  }

  /** The second product of a pair: its rows are shared out. */
  #leave(tape: Tape, x: Variable, name: string): Variable {
    const { tensor } = this.#parallel;
    const weight = this.#get(`${name}.weight`);
    const bias = this.#options.model.bias ? this.#get(`${name}.bias`) : undefined;
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
