/** One pipeline stage of a decoder-only transformer, forward; the tape knows the way back. */
import type { Model, Stage } from "@trireme/workload";
import { gelu, swiglu } from "./operators/activation.ts";
import { attention } from "./operators/attention.ts";
import { embedding } from "./operators/embedding.ts";
import { linear } from "./operators/linear.ts";
import { layerNorm, rmsNorm } from "./operators/norm.ts";
import { residual } from "./operators/residual.ts";
import type { ParameterSet } from "./parameters.ts";
import type { Tape, Variable } from "./tape.ts";

/** What a stage computes on: token ids in the first one, the previous stage's output in others. */
export interface StageInput {
  readonly batch: number;
  readonly sequence: number;
  /** Pointer to batch·sequence i32 token ids; used by the stage that embeds. */
  readonly tokens: number;
  /** [batch·sequence, hidden]; given to every stage but the first. */
  readonly hidden: Variable | undefined;
}

/** Runs the stage: to hidden states [batch·sequence, hidden], or logits [.., vocab] at the head. */
export function stageForward(
  tape: Tape,
  model: Model,
  stage: Stage,
  parameters: ParameterSet,
  input: StageInput,
): Variable {
  let x = stage.embedding ? embed(tape, model, parameters, input) : input.hidden;
  if (x === undefined) throw new Error(`stage ${stage.stage} got no input`);
  for (let i = 0; i < stage.layers; i++) {
    x = layerForward(tape, model, parameters, `h.${stage.firstLayer + i}`, x, input);
  }
  if (!stage.head) return x;
  const last = norm(tape, model, parameters, "ln_f", x);
  const head = parameters.get(model.tied ? "wte.weight" : "lm_head.weight");
  return linear(tape, last, head, undefined, true);
}

function embed(
  tape: Tape,
  model: Model,
  parameters: ParameterSet,
  { tokens, batch, sequence }: StageInput,
): Variable {
  const table = parameters.get("wte.weight");
  const positions = model.position === "learned" ? parameters.get("wpe.weight") : undefined;
  return embedding(tape, tokens, batch, sequence, table, positions);
}

function layerForward(
  tape: Tape,
  model: Model,
  parameters: ParameterSet,
  name: string,
  x: Variable,
  { batch, sequence }: StageInput,
): Variable {
  const { heads, kvHeads, headDim } = model;
  const rotaryBase = model.position === "rotary" ? model.rotaryBase : undefined;
  const project = (v: Variable, part: string): Variable => {
    const biased = part === "attn.c_attn" ? model.qkvBias : model.bias;
    const bias = biased ? parameters.get(`${name}.${part}.bias`) : undefined;
    return linear(tape, v, parameters.get(`${name}.${part}.weight`), bias);
  };

  const qkv = project(norm(tape, model, parameters, `${name}.ln_1`, x), "attn.c_attn");
  const shape = { batch, sequence, heads, kvHeads, headDim, rotaryBase };
  const attended = project(attention(tape, qkv, shape), "attn.c_proj");
  const middle = residual(tape, x, attended);

  const inner = project(norm(tape, model, parameters, `${name}.ln_2`, middle), "mlp.c_fc");
  const activated = model.activation === "swiglu" ? swiglu(tape, inner) : gelu(tape, inner);
  return residual(tape, middle, project(activated, "mlp.c_proj"));
}

function norm(
  tape: Tape,
  model: Model,
  parameters: ParameterSet,
  name: string,
  x: Variable,
): Variable {
  const gain = parameters.get(`${name}.weight`);
  if (model.norm === "rmsnorm") return rmsNorm(tape, x, gain, model.normEpsilon);
  return layerNorm(tape, x, gain, parameters.get(`${name}.bias`), model.normEpsilon);
}
