/** The rules of a model's shape. */
import { TriremeError, nearestDivisor, nearestName } from "@trireme/core";
import { matrices } from "./adapter.ts";
import {
  type Adapter,
  type AdapterTarget,
  type Encoder,
  type Experts,
  type LatentAttention,
  type Model,
  adapterTargets,
  isGated,
} from "./model.ts";

const sizes = [
  "layers",
  "hidden",
  "heads",
  "kvHeads",
  "headDim",
  "ffn",
  "vocab",
  "context",
] as const;

/** Throws TriremeError "MODEL" for the first rule that `m` breaks. */
export function checkModel(m: Model): void {
  for (const key of sizes) whole(key, m[key], 1);
  for (const key of ["extraPositions", "segments", "prediction"] as const) whole(key, m[key], 0);
  checkChoices(m);
  if (m.heads % m.kvHeads !== 0) {
    fail(
      `heads ${m.heads} is not a multiple of kvHeads ${m.kvHeads}; use kvHeads ${nearestDivisor(m.heads, m.kvHeads)}`,
    );
  }
  if (!(m.rotaryFraction > 0 && m.rotaryFraction <= 1)) {
    fail(`rotaryFraction ${m.rotaryFraction} must be in (0, 1]`);
  }
  if (m.sharedNorm && (m.block !== "parallel" || m.normPlacement !== "pre")) {
    fail(
      `sharedNorm needs block parallel with norms before it, not block ${m.block} with ${m.normPlacement}`,
    );
  }
  if (m.window !== undefined) {
    whole("window.size", m.window.size, 1);
    whole("window.every", m.window.every, 0);
  }
  if (m.latent !== undefined) checkLatent(m, m.latent);
  if (m.experts !== undefined) checkExperts(m.experts, m.layers);
  if (m.adapter !== undefined) checkAdapter(m, m.adapter);
  checkAttention(m);
  for (const [i, e] of m.encoders.entries()) checkEncoder(e, i);
}

const booleans = [
  "normBias",
  "normWeights",
  "sharedNorm",
  "finalNorm",
  "embeddingNorm",
  "bias",
  "qkvBias",
  "outputBias",
  "headBias",
  "attentionSinks",
  "attentionGate",
  "tied",
  "causal",
  "pooler",
] as const;

const choices = [
  ["position", ["learned", "rotary", "alibi", "none"]],
  ["norm", ["layernorm", "rmsnorm"]],
  ["normPlacement", ["pre", "post", "both"]],
  ["block", ["sequential", "parallel"]],
  ["qkNorm", ["none", "head", "all"]],
  ["activation", ["gelu", "relu", "squared-relu", "swiglu", "geglu"]],
] as const;

function checkChoices(m: Model): void {
  for (const [key, known] of choices) choice(key, m[key], known);
  for (const key of booleans) {
    if (typeof m[key] !== "boolean") fail(`${key} ${String(m[key])} must be true or false`);
  }
  if (!(m.normEpsilon > 0 && m.normEpsilon < Infinity)) {
    fail(`normEpsilon ${m.normEpsilon} must be above 0; the usual is 1e-5`);
  }
  if (!(m.activationClamp >= 0 && m.activationClamp < Infinity)) {
    fail(`activationClamp ${m.activationClamp} must be 0, for no bound, or above; gpt-oss has 7`);
  }
  if (m.activationClamp > 0 && !isGated(m.activation)) {
    fail(
      `activationClamp ${m.activationClamp} bounds gate and up, which ${m.activation} has not; use swiglu or geglu`,
    );
  }
  if (!(m.rotaryBase > 0 && m.rotaryBase < Infinity)) {
    fail(`rotaryBase ${m.rotaryBase} must be above 0; the usual is 10000`);
  }
}

function choice(key: string, value: string, known: readonly string[]): void {
  if (known.includes(value)) return;
  const near = nearestName(value, known);
  fail(
    `${key} "${value}" is not one of ${known.join(", ")}${near === undefined ? "" : `; did you mean "${near}"?`}`,
  );
}

function checkAttention(m: Model): void {
  if (m.adapter !== undefined && m.prediction > 0) {
    fail(
      `adapter: fine-tuning leaves the ${m.prediction} prediction modules out; use prediction 0`,
    );
  }
  if (m.segments > 0 && m.causal) {
    fail(`segments ${m.segments} belong to encoders of text; use causal false, or segments 0`);
  }
  if (m.window !== undefined && !m.causal) {
    fail(`window.size ${m.window.size} looks back from a token; use causal true, or no window`);
  }
}

function checkLatent(m: Model, latent: LatentAttention): void {
  whole("latent.queryRank", latent.queryRank, 0);
  for (const key of ["keyValueRank", "nopeDim", "ropeDim", "valueDim"] as const) {
    whole(`latent.${key}`, latent[key], 1);
  }
  if (m.kvHeads !== m.heads) {
    fail(`latent attention makes keys for all ${m.heads} heads; leave kvHeads ${m.kvHeads} out`);
  }
  if (m.qkNorm !== "none") fail(`latent attention has norms of its own; leave qkNorm out`);
  if (m.position !== "rotary") {
    fail(`latent attention rotates ropeDim; use position rotary, not ${m.position}`);
  }
}

function checkExperts(e: Experts, layers: number): void {
  for (const key of ["count", "active", "ffn", "every"] as const)
    whole(`experts.${key}`, e[key], 1);
  for (const key of ["sharedFfn", "denseLayers"] as const) whole(`experts.${key}`, e[key], 0);
  if (e.active > e.count) {
    fail(
      `experts.active ${e.active} are more than experts.count ${e.count}; the most is ${e.count}`,
    );
  }
  if (Math.floor(layers / e.every) <= Math.floor(e.denseLayers / e.every)) {
    fail(
      `experts.denseLayers ${e.denseLayers} and every ${e.every} leave no layer of ${layers} with experts; leave experts out, or use fewer`,
    );
  }
  if (e.sharedGate && e.sharedFfn === 0) {
    fail("experts.sharedGate needs a shared expert; state sharedFfn");
  }
}

/** Adapters of several matrices at once, and those of each that they stand for. */
const fused = { qkv: ["query", "key", "value"], "gate-up": ["gate", "up"] } as const;

function checkAdapter(m: Model, a: Adapter): void {
  whole("adapter.rank", a.rank, 1);
  choice("adapter.base", a.base, ["full", "fp8", "int8", "nf4"]);
  if (!(a.dropout >= 0 && a.dropout < 1)) {
    fail(`adapter.dropout ${a.dropout} must be at least 0 and below 1; LoRA's is 0 to 0.1`);
  }
  if (a.targets.length === 0)
    fail(`adapter.targets is empty; name some of ${adapterTargets.join(", ")}`);
  if (new Set(a.targets).size < a.targets.length) {
    fail(`adapter.targets ${a.targets.join(", ")} names one twice`);
  }
  const known = matrices(m).map(({ target }) => target);
  for (const t of a.targets) {
    if (!adapterTargets.includes(t)) {
      fail(`adapter.targets: "${t}" is not one of ${adapterTargets.join(", ")}`);
    }
    if (!known.includes(t)) absent(m, t, known);
  }
  for (const [together, parts] of Object.entries(fused)) {
    const twice = parts.find((part) => a.targets.includes(part));
    if (a.targets.some((t) => t === together) && twice !== undefined) {
      fail(`adapter.targets: ${together} has ${twice} in it; name one of them`);
    }
  }
}

/** A matrix that this model has not. */
function absent(m: Model, target: AdapterTarget, known: readonly AdapterTarget[]): never {
  if ((target === "gate" || target === "gate-up") && !isGated(m.activation)) {
    fail(`adapter.targets: ${m.activation} has no gate; use up`);
  }
  if (m.experts !== undefined && ["gate", "up", "gate-up", "down"].includes(target)) {
    fail(
      `adapter.targets: adapters of experts' matrices (${target}) are not covered; use attention's`,
    );
  }
  if (m.latent !== undefined) {
    fail(
      `adapter.targets: this latent attention has no ${target} matrix; use ${known.filter((t) => t !== "output").join(", ")} or output`,
    );
  }
  fail(`adapter.targets: ${target} belongs to latent attention; use ${known.join(", ")}`);
}

function checkEncoder(e: Encoder, index: number): void {
  const name = `encoders[${index}]`;
  for (const key of [
    "layers",
    "hidden",
    "heads",
    "ffn",
    "patch",
    "tokens",
    "span",
    "merge",
  ] as const) {
    whole(`${name}.${key}`, e[key], 1);
  }
  whole(`${name}.positionRows`, e.positionRows, 0);
  choice(`${name}.modality`, e.modality, ["image", "video", "audio"]);
  choice(`${name}.activation`, e.activation, ["gelu", "relu", "squared-relu", "swiglu", "geglu"]);
  choice(`${name}.norm`, e.norm, ["layernorm", "rmsnorm"]);
  for (const width of e.projector) whole(`${name}.projector`, width, 1);
  if (e.hidden % e.heads !== 0) {
    fail(
      `${name}: hidden ${e.hidden} is not a multiple of heads ${e.heads}; use heads ${nearestDivisor(e.hidden, e.heads)}`,
    );
  }
  for (const [what, n] of [
    ["span", e.span],
    ["merge", e.merge],
  ] as const) {
    if (e.tokens % n === 0) continue;
    fail(
      `${name}: tokens ${e.tokens} are not a multiple of ${what} ${n}; the nearest is ${Math.max(1, Math.round(e.tokens / n)) * n}`,
    );
  }
}

/** Refuses what is no whole number, or below `least`. */
export function whole(name: string, value: number, least: 0 | 1): void {
  if (!Number.isSafeInteger(value) || value < least) {
    fail(`${name} ${value} must be a whole number, ${least} or more`);
  }
}

/** Refuses a model. */
export function fail(message: string): never {
  throw new TriremeError("MODEL", message);
}
