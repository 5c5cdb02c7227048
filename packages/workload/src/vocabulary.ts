/**
 * A vocabulary that is split over the pipeline ranks as well (Vocabulary Parallelism, Yeung et al., arXiv 2411.05288):
 * every rank looks tokens up in its part of the table, and of every microbatch computes the logits of its part in two
 * passes beside those of its layers. S takes logits, their maximum and sum; T the gradients that all ranks' sums are
 * needed for. Between them the ranks exchange, on a stream of its own. With two barriers (Algorithm 1) the gradient of
 * the last stage's output is in T; with one (Algorithm 2) S has it from its own sums, and the exchange puts it right.
 * An interlaced pipeline (nnScaler, OSDI 2024) runs both as tensor parallelism does: at once on all ranks, waiting for
 * every exchange.
 */
import type { Bytes } from "@trireme/core";
import { denseGradient, embedding, loss } from "./end-operators.ts";
import type { Model } from "./model.ts";
import type { OperatorList } from "./operator-list.ts";
import type { Plan } from "./plan.ts";
import { bytesOf } from "./precision.ts";
import { lossVocab, vocabShard } from "./stage.ts";

/** Appends what one rank does for a microbatch with its part of the vocabulary: lookup, logits and loss. */
export function vocabularyOperators(m: Model, list: OperatorList, tokens: number): void {
  const p = list.plan;
  const frozen = m.adapter !== undefined;
  // Tokens of other parts are looked up as rows of zeros.
  const rows = vocabShard(m, p);
  embedding(list, tokens, m.hidden, rows, frozen);
  if (!frozen) denseGradient(list, rows, m.hidden);
  list.gemm(tokens, m.hidden, rows, m.headBias, { quantise: false, frozen });
  loss(list, tokens, lossVocab(m, p));
}

/** An exchange of one microbatch among the pipeline ranks. */
export interface VocabularyExchange {
  readonly operation: "broadcast" | "all-reduce";
  /** What it carries. */
  readonly of: "embedding" | "output" | "statistics" | "output-gradient" | "embedding-gradient";
  readonly bytes: Bytes;
  readonly count: number;
}

/**
 * The exchanges of one microbatch (arXiv 2411.05288 §4.2, §5.2): rows of the table are summed for the first stage and
 * their gradients handed out by it; the last stage's output is handed out; each token's maximum, target logit and sum
 * of exponentials, and the gradient of the output, are summed. None where the plan does not split the vocabulary.
 */
export function vocabularyExchanges(m: Model, p: Plan): readonly VocabularyExchange[] {
  if (p.vocabulary === undefined) return [];
  const tokens = (p.microbatch * p.sequence) / p.cp / (p.sequenceParallel ? p.tp : 1);
  const rows = tokens * m.hidden * bytesOf(p.precision);
  const trained = m.adapter === undefined ? 1 : 0;
  return [
    { operation: "all-reduce", of: "embedding", bytes: rows, count: 1 },
    { operation: "broadcast", of: "output", bytes: rows, count: 1 },
    { operation: "all-reduce", of: "statistics", bytes: 4 * tokens, count: 3 },
    { operation: "all-reduce", of: "output-gradient", bytes: rows, count: 1 },
    { operation: "broadcast", of: "embedding-gradient", bytes: rows, count: trained },
  ];
}
