/** The rules of a plan, in the order in which a person would want to hear of them. */
import { TriremeError, nearestName, nearestDivisor } from "@trireme/core";
import { decoderTokens } from "./encoder.ts";
import type { Model } from "./model.ts";
import { checkPipeline } from "./pipeline-rules.ts";
import { checkPipelines } from "./pipelines.ts";
import type { Plan } from "./plan.ts";
import { exchangedHeads, tensorWidths } from "./split-widths.ts";
import { checkVocabulary } from "./vocabulary-rules.ts";

const counts = [
  "tp",
  "pp",
  "dp",
  "cp",
  "ep",
  "etp",
  "vpp",
  "microbatch",
  "globalBatch",
  "sequence",
] as const;

/** Names of pipeline schedules. */
export const pipelineSchedules = [
  "gpipe",
  "1f1b",
  "interleaved",
  "dfs-bfs",
  "looped-bfs",
  "zb-h1",
  "zb-h2",
  "interleaved-zero-bubble",
  "zb-v",
  "v-half",
  "v-min",
  "dualpipe-v",
  "chimera",
  "dualpipe",
] as const;

type Choice =
  | "schedule"
  | "recompute"
  | "contextExchange"
  | "dispatch"
  | "offload"
  | "cudaGraphs"
  | "precision"
  | "gradientPrecision";

const choices: readonly (readonly [Choice, readonly string[]])[] = [
  ["schedule", pipelineSchedules],
  ["recompute", ["none", "selective", "operators", "rematerialise", "experts", "full"]],
  ["contextExchange", ["ring", "all-gather", "all-to-all"]],
  ["dispatch", ["all-to-all", "unique", "all-gather"]],
  ["offload", ["none", "optimizer"]],
  ["cudaGraphs", ["none", "routing", "all"]],
  ["precision", ["fp32", "bf16", "fp16"]],
  ["gradientPrecision", ["fp32", "bf16", "fp16"]],
];

const optionalChoices: readonly (readonly [
  (
    | "dispatchPrecision"
    | "momentPrecision"
    | "reductionPrecision"
    | "gradientExchange"
    | "vocabulary"
    | "attentionPrecision"
    | "activationPrecision"
  ),
  readonly string[],
])[] = [
  ["dispatchPrecision", ["fp32", "bf16", "fp8"]],
  ["momentPrecision", ["fp32", "bf16"]],
  ["reductionPrecision", ["fp32", "bf16", "fp16"]],
  ["gradientExchange", ["reduce-scatter", "all-reduce"]],
  ["vocabulary", ["two-barriers", "one-barrier", "interlaced"]],
  ["attentionPrecision", ["fp8"]],
  ["activationPrecision", ["fp8"]],
];

function fail(message: string): never {
  throw new TriremeError("PLAN", message);
}

/** Throws TriremeError "PLAN" for the first rule that `p` breaks on `m`. */
export function checkPlan(m: Model, p: Plan): void {
  checkValues(p);
  checkPipelines(m, p);
  checkTensor(m, p);
  checkExperts(m, p);
  checkBatch(m, p);
  checkPipeline(m, p);
  checkVocabulary(m, p);
}

function checkValues(p: Plan): void {
  for (const key of counts) {
    if (!Number.isSafeInteger(p[key]) || p[key] < 1) {
      fail(`${key} ${p[key]} must be a whole number, 1 or more`);
    }
  }
  for (const [key, known] of choices) {
    if (known.includes(p[key])) continue;
    const near = nearestName(p[key], known);
    fail(
      `${key} "${p[key]}" is not one of ${known.join(", ")}${near === undefined ? "" : `; did you mean "${near}"?`}`,
    );
  }
  if (p.matrixPrecision !== undefined && !["fp8", "int8", "fp4"].includes(p.matrixPrecision)) {
    fail(
      `matrixPrecision "${p.matrixPrecision}" is not one of fp8, int8, fp4; leave it out to use precision`,
    );
  }
  for (const [key, known] of optionalChoices) {
    const value = p[key];
    if (value === undefined || known.includes(value)) continue;
    fail(`${key} "${value}" is not one of ${known.join(", ")}; leave it out for the usual`);
  }
  if (p.document !== undefined) checkDocument(p, p.document);
  if (p.attentionPrecision !== undefined && !p.flashAttention) {
    fail(`attentionPrecision fp8 is of flash attention; use flashAttention true`);
  }
  if (p.zero === 3 && p.gradientExchange === "all-reduce") {
    fail(
      `gradientExchange "all-reduce" with zero 3, which keeps shares only; use "reduce-scatter"`,
    );
  }
  if (p.flashVersion !== undefined && ![1, 2, 3].includes(p.flashVersion)) {
    fail(`flashVersion ${p.flashVersion} is not 1, 2 or 3; leave it out for the device's best`);
  }
  if (![0, 1, 2, 3].includes(p.zero)) fail(`zero ${p.zero} is not a ZeRO stage: 0, 1, 2 or 3`);
  if (
    p.recomputeLayers !== undefined &&
    (!Number.isSafeInteger(p.recomputeLayers) || p.recomputeLayers < 0)
  ) {
    fail(`recomputeLayers ${p.recomputeLayers} must be a whole number, 0 or more`);
  }
  if (p.expertCapacity !== undefined && !(p.expertCapacity > 0 && p.expertCapacity < Infinity)) {
    fail(`expertCapacity ${p.expertCapacity} must be above 0; leave it out to drop no token`);
  }
  const named = new Set<string>(p.order);
  if (p.order.length !== 4 || ["tp", "cp", "dp", "pp"].some((a) => !named.has(a))) {
    fail(
      `order ${p.order.join("-")} must name tp, cp, dp and pp once each; the usual is tp-cp-dp-pp`,
    );
  }
  if (!(p.dropout >= 0 && p.dropout < 1)) fail(`dropout ${p.dropout} must be in [0, 1)`);
}

function checkDocument(p: Plan, document: number): void {
  if (!Number.isSafeInteger(document) || document < 1 || document > p.sequence) {
    fail(
      `document ${document} must be a whole number from 1 to the ${p.sequence} tokens of a sample; leave it out where a sample is one`,
    );
  }
  if (!p.flashAttention) {
    fail(`document ${document} is of flash attention; use flashAttention true`);
  }
}

function checkTensor(m: Model, p: Plan): void {
  for (const [what, n] of tensorWidths(m)) {
    if (n % p.tp !== 0) {
      fail(
        `${what} ${n} is not a multiple of tp ${p.tp}; the nearest legal tp is ${nearestDivisor(n, p.tp)}`,
      );
    }
  }
  const byHeads = p.contextExchange === "all-to-all";
  for (const [what, n] of exchangedHeads(m, byHeads)) {
    if ((n / p.tp) % p.cp === 0) continue;
    const reason =
      what === "kvHeads" ? "contextExchange all-to-all splits heads" : "context parallel";
    fail(
      `${reason}: ${what} ${n} / tp ${p.tp} = ${n / p.tp} is not a multiple of cp ${p.cp}; the nearest legal cp is ${nearestDivisor(n / p.tp, p.cp)}`,
    );
  }
  // Causal work is even when each rank takes one chunk from the front and one from the back.
  const halves = byHeads ? 1 : 2;
  const chunks = (p.sequenceParallel ? p.tp : 1) * (p.cp > 1 ? halves * p.cp : 1);
  if (p.sequence % chunks !== 0) {
    const near = Math.max(1, Math.round(p.sequence / chunks)) * chunks;
    const splits =
      p.cp > 1
        ? `${halves === 2 ? "2 " : ""}cp ${p.cp}${p.sequenceParallel ? ` × tp ${p.tp}` : ""} = ${chunks}`
        : `tp ${p.tp}`;
    fail(
      `${p.cp > 1 ? "context parallel" : "sequenceParallel"}: sequence ${p.sequence} is not a multiple of ${splits}; the nearest is ${near}`,
    );
  }
}

/** Experts are dealt out whole, and their ranks are the dense layers' laid out anew. */
function checkExperts(m: Model, p: Plan): void {
  const e = m.experts;
  if (e === undefined) {
    for (const key of ["ep", "etp"] as const) {
      if (p[key] > 1) fail(`${key} ${p[key]}: ${m.name} has no experts; use ${key} 1`);
    }
    if (p.recompute === "experts") {
      fail(`recompute experts: ${m.name} has no experts; use recompute selective or full`);
    }
    if (p.dispatchPrecision !== undefined) {
      fail(`dispatchPrecision ${p.dispatchPrecision}: ${m.name} has no experts; leave it out`);
    }
    if (p.expertCapacity !== undefined) {
      fail(`expertCapacity ${p.expertCapacity}: ${m.name} has no experts; leave it out`);
    }
    return;
  }
  if (e.count % p.ep !== 0) {
    fail(
      `experts ${e.count} are not a multiple of ep ${p.ep}; the nearest legal ep is ${nearestDivisor(e.count, p.ep)}`,
    );
  }
  if (e.ffn % p.etp !== 0) {
    fail(
      `experts.ffn ${e.ffn} is not a multiple of etp ${p.etp}; the nearest legal etp is ${nearestDivisor(e.ffn, p.etp)}`,
    );
  }
  if (e.sharedFfn % p.tp !== 0) {
    fail(
      `experts.sharedFfn ${e.sharedFfn} is not a multiple of tp ${p.tp}; the nearest legal tp is ${nearestDivisor(e.sharedFfn, p.tp)}`,
    );
  }
  const replica = p.tp * p.cp * p.dp;
  if (replica % (p.ep * p.etp) !== 0) {
    fail(
      `tp ${p.tp} × cp ${p.cp} × dp ${p.dp} = ${replica} is not a multiple of ep ${p.ep} × etp ${p.etp} = ${p.ep * p.etp}; the nearest legal ep is ${nearestDivisor(replica / p.etp, p.ep)}`,
    );
  }
  if (p.tp > 1 && !p.sequenceParallel) {
    fail(`experts with tp ${p.tp} need each token on one rank; set sequenceParallel, or use tp 1`);
  }
  const between = p.order[0] !== "pp" && p.order.at(-1) !== "pp" && p.pp > 1;
  if (between) {
    fail(
      `order ${p.order.join("-")} puts pp ${p.pp} between the axes that experts fold; put it first or last`,
    );
  }
}

function checkBatch(m: Model, p: Plan): void {
  const encoded = m.encoders.reduce((sum, e) => sum + decoderTokens(e), 0);
  if (encoded > p.sequence) {
    fail(
      `sequence ${p.sequence} is shorter than the ${encoded} tokens that encoders give; use ${encoded} or more`,
    );
  }
  const unit = p.dp * p.microbatch;
  if (p.pipelineBatches === undefined && p.globalBatch % unit !== 0) {
    const near = Math.max(1, Math.round(p.globalBatch / unit)) * unit;
    fail(
      `globalBatch ${p.globalBatch} is not a multiple of dp ${p.dp} × microbatch ${p.microbatch} = ${unit}; the nearest is ${near}`,
    );
  }
  if (m.position === "learned" && p.sequence > m.context) {
    fail(
      `sequence ${p.sequence} is longer than the ${m.context} learned positions of ${m.name}; use ${m.context}`,
    );
  }
}
