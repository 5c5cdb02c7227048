/** The rules of a vocabulary that is split over the pipeline ranks. */
import { TriremeError } from "@trireme/core";
import type { Model } from "./model.ts";
import type { Plan } from "./plan.ts";

/**
 * Throws TriremeError "PLAN" for the first rule of a split vocabulary that `p` breaks on `m`. Its passes are put into
 * 1F1B and V-Half (arXiv 2411.05288 §5); an interlaced pipeline is 1F1B.
 */
export function checkVocabulary(m: Model, p: Plan): void {
  const { vocabulary, schedule } = p;
  if (vocabulary === undefined) return;
  const fail = (rule: string): never => {
    throw new TriremeError("PLAN", `vocabulary ${vocabulary} ${rule}`);
  };
  if (p.pipelines !== undefined) fail("needs pipelines that are alike; leave it out");
  if (p.pp === 1) fail("splits over pipeline ranks, and pp is 1; use pp 2 or leave it out");
  const known = vocabulary === "interlaced" ? ["1f1b"] : ["1f1b", "v-half"];
  if (!known.includes(schedule)) {
    fail(`goes with schedule ${known.join(" or ")}, not ${schedule}; use 1f1b`);
  }
  if (m.prediction > 0) {
    fail(`has no passes for the prediction modules of ${m.name}; leave it out`);
  }
  if (!p.vocabParallelLoss) {
    fail("computes the loss over parts of the vocabulary; leave vocabParallelLoss true");
  }
  for (const key of ["accountForEmbedding", "accountForLoss"] as const) {
    if (p[key]) fail(`leaves the ends no more than other stages; leave ${key} out`);
  }
}
