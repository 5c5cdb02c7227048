/**
 * A vocabulary split over the pipeline ranks: what its passes add to every microbatch on every rank. Exchanges run on a
 * stream of their own and take from compute what kernels beside it take (`overlap.ts`), longer ones hold the pipeline
 * up; an interlaced pipeline waits for all of them (arXiv 2411.05288 §4, appendix B.2).
 */
import type { Seconds } from "@trireme/core";
import {
  type Plan,
  type Stage,
  type VocabularyExchange,
  vocabularyExchanges,
} from "@trireme/workload";
import { overlapContention, overlapped } from "./overlap.ts";
import { type PlanPrices, stageOf } from "./prices.ts";

/** One microbatch on one rank, over its part of the vocabulary. */
export interface VocabularyCosts {
  /** Lookup, logits, their statistics; with one barrier, the gradient of the output too. */
  readonly s: Seconds;
  /** The gradients that are left, the lookup's among them. */
  readonly t: Seconds;
  /** What of both is exposed tensor-parallel communication. */
  readonly tensorParallel: Seconds;
  /** Exchanges by what they carry. */
  readonly exchange: Readonly<Record<VocabularyExchange["of"], Seconds>>;
}

const part: Stage = {
  stage: 0,
  firstLayer: 0,
  layers: 0,
  embedding: false,
  head: false,
  vocabulary: true,
};

/** Prices the passes; undefined where the plan does not split the vocabulary. */
export function vocabularyCosts(own: PlanPrices): VocabularyCosts | undefined {
  const { model, plan, communication } = own;
  if (plan.vocabulary === undefined) return undefined;
  const { compute, exposed } = stageOf(own, part);
  const of = (pass: "forward" | "input-gradient" | "weight-gradient"): Seconds =>
    compute[pass] + exposed[pass];
  const exchange = {
    embedding: 0,
    output: 0,
    statistics: 0,
    "output-gradient": 0,
    "embedding-gradient": 0,
  };
  for (const x of vocabularyExchanges(model, plan)) {
    exchange[x.of] = x.count * communication.amongStages(x.operation, x.bytes);
  }
  const early = plan.vocabulary === "one-barrier" ? of("input-gradient") : 0;
  return {
    s: of("forward") + early,
    t: of("input-gradient") + of("weight-gradient") - early,
    tensorParallel: exposed.forward + exposed["input-gradient"] + exposed["weight-gradient"],
    exchange,
  };
}

/**
 * What of a microbatch's exchanges holds a rank up that works `beside` them. A rank takes its part in one between two
 * passes of its layers, none longer than `pass`: half a pass later on average than the first that could. Until the last
 * rank is there the others' kernels wait on the device, and keep from compute what they hold.
 */
export function exposedExchange(
  plan: Plan,
  { s, t, exchange }: VocabularyCosts,
  beside: Seconds,
  pass: Seconds,
): Seconds {
  const all = Object.values(exchange).reduce((sum, time) => sum + time, 0);
  if (plan.vocabulary === "interlaced") return all;
  return overlapped(all, beside + s + t, 0) + overlapContention * (pass / 2);
}
