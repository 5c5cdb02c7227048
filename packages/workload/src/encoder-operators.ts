/** The kernels of an encoder in front of the first stage: patches, bidirectional layers, norm, projector. */
import { attention } from "./attention-operators.ts";
import { decoderTokens, projectorWidths, trainsEncoder } from "./encoder.ts";
import { type Encoder, type Model, isGated } from "./model.ts";
import { OperatorList } from "./operator-list.ts";
import type { Operator } from "./operator.ts";
import type { Plan } from "./plan.ts";

/**
 * The operators of an encoder for one microbatch on one rank; a frozen one is only run forward, but for its projector;
 * under adapters, that too.
 */
export function encoderOperators(m: Model, p: Plan, e: Encoder): readonly Operator[] {
  // Context parallelism splits the images of a batch; each keeps its tokens together.
  const list = new OperatorList({ ...p, cp: 1 });
  const tokens = (p.microbatch * e.tokens) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  const first = isGated(e.activation) ? 2 * e.ffn : e.ffn;
  list.gemm(tokens, e.patch, e.hidden, e.bias);
  if (e.embeddingNorm) list.norm(e.norm, rows, e.hidden);
  list.repeat(e.layers, p.recompute === "full" ? "full" : "none");
  list.norm(e.norm, rows, e.hidden);
  list.gemm(tokens, e.hidden, (3 * e.hidden) / p.tp, e.bias);
  attention(list, {
    batch: tokens / e.span,
    sequence: e.span,
    heads: e.heads / p.tp,
    kvHeads: e.heads / p.tp,
    headDim: e.hidden / e.heads,
    valueDim: e.hidden / e.heads,
    causal: false,
    rotary: e.positionRows === 0 ? 1 : 0,
  });
  list.gemm(tokens, e.hidden / p.tp, e.hidden, e.bias);
  list.add(rows, e.hidden);
  list.norm(e.norm, rows, e.hidden);
  list.gemm(tokens, e.hidden, first / p.tp, e.bias);
  list.activation(e.activation, tokens, e.ffn / p.tp);
  list.gemm(tokens, e.ffn / p.tp, e.hidden, e.bias);
  list.add(rows, e.hidden);
  list.repeat(1, "none");
  list.norm(e.norm, rows, e.hidden);
  const behind = projector(m, p, e);
  return [
    ...(trainsEncoder(m, e) ? list.operators : forwardOf(list.operators)),
    ...(m.adapter === undefined ? behind : forwardOf(behind)),
  ];
}

function forwardOf(operators: readonly Operator[]): readonly Operator[] {
  return operators.filter((o) => o.pass === "forward");
}

function projector(m: Model, p: Plan, e: Encoder): readonly Operator[] {
  const list = new OperatorList(p);
  const tokens = (p.microbatch * decoderTokens(e)) / p.cp;
  const widths = projectorWidths(m, e);
  for (let i = 1; i < widths.length; i++) {
    list.gemm(tokens, widths[i - 1]!, widths[i]!, e.bias);
    if (i < widths.length - 1) list.activation(e.activation, tokens, widths[i]!);
  }
  return list.operators;
}
