/** One microbatch through one stage on one rank: its operators in order of execution, and its collectives. */
import { OperatorList } from "./kernels.ts";
import type { Model } from "./model.ts";
import type { CollectiveOperator, Operator } from "./operator.ts";
import { fc1Width, qkvWidth } from "./parameters.ts";
import { type Plan } from "./plan.ts";
import { type Stage, lossVocab, stageParameters, vocabShard } from "./stage.ts";
import { stageCollectives } from "./stage-collectives.ts";

/** What a rank does for one microbatch of a stage; what has pass "update" happens once per step. */
export interface StageOperators {
  readonly operators: readonly Operator[];
  readonly collectives: readonly CollectiveOperator[];
}

/**
 * Operators and collectives of stage `s` on one rank after the tensor-parallel split. Forward order:
 * embedding; per layer norm, QKV product, attention, projection, add, norm, first product, activation,
 * second product, add; head: norm, logits, loss. All backward work of a kernel without weights is its
 * input gradient; the embedding's is a weight gradient; a product has both. A layer's operators
 * are listed once, with the number of layers as their count.
 */
export function stageOperators(m: Model, p: Plan, s: Stage): StageOperators {
  const list = new OperatorList(p);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  // The norms and adds of a sequence-parallel rank see its part of the tokens only.
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  const vocab = vocabShard(m, p);
  if (s.embedding) list.embedding(tokens, m.hidden, vocab);
  if (s.layers > 0) {
    list.repeat(s.layers, p.recompute === "selective" ? "none" : p.recompute);
    list.norm(m.norm, rows, m.hidden);
    const keys = (m.kvHeads * m.headDim) / p.tp;
    list.gemm(tokens, m.hidden, qkvWidth(m) / p.tp, m.qkvBias, { dropped: keys });
    list.attention(m);
    // Of separate query, key, value, output, gate, up and down products, every other one is dropped.
    list.gemm(tokens, (m.heads * m.headDim) / p.tp, m.hidden, m.bias, { dropped: m.hidden });
    list.add(rows, m.hidden);
    list.norm(m.norm, rows, m.hidden);
    const up = m.activation === "swiglu" ? m.ffn / p.tp : 0;
    list.gemm(tokens, m.hidden, fc1Width(m) / p.tp, m.bias, { dropped: up });
    list.activation(m.activation, tokens, m.ffn / p.tp);
    list.gemm(tokens, m.ffn / p.tp, m.hidden, m.bias);
    list.add(rows, m.hidden);
    list.repeat(1, "none");
  }
  if (s.head) {
    list.norm(m.norm, rows, m.hidden);
    list.gemm(tokens, m.hidden, vocab, false, { quantise: false });
    list.loss(tokens, lossVocab(m, p));
  }
  const held = stageParameters(m, p, s).total;
  if (held > 0) list.optimizer(p.zero >= 1 ? Math.ceil(held / (p.dp * p.cp)) : held);
  return { operators: list.operators, collectives: stageCollectives(m, p, s) };
}

/**
 * Bytes of one microbatch's activation that a rank sends to the next stage: all of it, or its part
 * where sequence parallelism or scatter/gather splits it over tp.
 */
export function boundaryBytes(m: Model, p: Plan): number {
  const split = p.cp * (p.sequenceParallel || p.scatterGather ? p.tp : 1);
  const element = p.precision === "fp32" ? 4 : 2;
  return (p.microbatch * p.sequence * m.hidden * element) / split;
}
