/**
 * The tensors of a pipeline stage, under the names and in the shapes of GPT-2 as Hugging Face
 * transformers stores it ([in, out] weights), so that its files can be read as such.
 */
import type { Model, Stage } from "@trireme/workload";
import type { ParameterSpec } from "./parameters.ts";

/** Standard deviation of fresh weights (Radford et al., GPT-2, 2019). */
const deviation = 0.02;

/** Every tensor that the stage computes with; a tied output head appears as the embedding table. */
export function stageParameters(model: Model, stage: Stage): ParameterSpec[] {
  const specs: ParameterSpec[] = [];
  const { hidden, vocab } = model;
  const table = matrix("wte.weight", [vocab, hidden]);
  if (stage.embedding) {
    specs.push(table);
    if (model.position === "learned") specs.push(matrix("wpe.weight", [model.context, hidden]));
  }
  for (let i = 0; i < stage.layers; i++) specs.push(...layer(model, stage.firstLayer + i));
  if (stage.head) {
    specs.push(...norm(model, "ln_f"));
    if (!model.tied) specs.push(matrix("lm_head.weight", [vocab, hidden]));
    else if (!stage.embedding) specs.push(table);
  }
  return specs;
}

function layer(model: Model, index: number): ParameterSpec[] {
  const { hidden, heads, kvHeads, headDim, ffn } = model;
  const prefix = `h.${index}`;
  const into = model.activation === "swiglu" ? 2 * ffn : ffn;
  // Two residual branches a layer: their sum keeps the variance of one (GPT-2, section 2.3).
  const last = deviation / Math.sqrt(2 * model.layers);
  return [
    ...norm(model, `${prefix}.ln_1`),
    ...weights(`${prefix}.attn.c_attn`, hidden, (heads + 2 * kvHeads) * headDim, model.qkvBias),
    ...weights(`${prefix}.attn.c_proj`, heads * headDim, hidden, model.bias, last),
    ...norm(model, `${prefix}.ln_2`),
    ...weights(`${prefix}.mlp.c_fc`, hidden, into, model.bias),
    ...weights(`${prefix}.mlp.c_proj`, ffn, hidden, model.bias, last),
  ];
}

function weights(
  name: string,
  rows: number,
  cols: number,
  biased: boolean,
  spread = deviation,
): ParameterSpec[] {
  const weight = matrix(`${name}.weight`, [rows, cols], spread);
  return biased ? [weight, constant(`${name}.bias`, cols, 0)] : [weight];
}

function norm(model: Model, name: string): ParameterSpec[] {
  const gain = constant(`${name}.weight`, model.hidden, 1);
  return model.norm === "rmsnorm" ? [gain] : [gain, constant(`${name}.bias`, model.hidden, 0)];
}

function matrix(name: string, dims: readonly number[], spread = deviation): ParameterSpec {
  return { name, dims, initial: { deviation: spread }, decays: true };
}

function constant(name: string, size: number, value: number): ParameterSpec {
  return { name, dims: [size], initial: { constant: value }, decays: false };
}
