/** The rules of a model's pattern, and of the layers that only a pattern can name. */
import { nearestDivisor } from "@trireme/core";
import type { DeltaNet, Mamba, Model } from "./model.ts";
import { fail, whole } from "./model-rules.ts";
import { readPattern } from "./pattern.ts";

/** Throws TriremeError "MODEL" for the first of these rules that `m` breaks. */
export function checkPattern(m: Model): void {
  if (m.mamba !== undefined) checkMamba(m.mamba);
  if (m.deltaNet !== undefined) checkDeltaNet(m.deltaNet);
  if (m.attentionGate && m.latent !== undefined) {
    fail("attentionGate scales what plain attention gives; leave latent out, or the gate");
  }
  if (m.pattern === undefined) {
    for (const [key, letter] of [
      ["mamba", "M"],
      ["deltaNet", "G"],
    ] as const) {
      if (m[key] !== undefined) fail(`${key} has no layer; name its layers ${letter} in a pattern`);
    }
    return;
  }
  checkLayers(m, m.pattern);
  checkLetters(m, m.pattern);
  if (m.block !== "sequential") fail(`a pattern names blocks one after another, not ${m.block}`);
  if (m.adapter !== undefined) {
    fail("adapter: adapters of a pattern's layers are not covered; leave the pattern out");
  }
}

function checkLayers(m: Model, pattern: string): void {
  const { layers, prediction } = readPattern(pattern);
  if (m.layers % layers.length !== 0) {
    const near = Math.max(1, Math.round(m.layers / layers.length)) * layers.length;
    fail(
      `layers ${m.layers} are not a multiple of the ${layers.length} that the pattern names; the nearest is ${near}`,
    );
  }
  if (prediction !== undefined && m.prediction === 0) {
    fail(`pattern "${pattern}" names prediction modules, but prediction is 0; state their number`);
  }
  const recurrent = layers.find((f) => f.mixer === "mamba" || f.mixer === "delta-net");
  if (recurrent !== undefined && !m.causal) {
    fail(`pattern "${pattern}": state-space layers and delta nets run forward; use causal true`);
  }
}

/** Every letter has its fields, and every field its letter. */
function checkLetters(m: Model, pattern: string): void {
  for (const [letter, key] of [
    ["M", "mamba"],
    ["G", "deltaNet"],
    ["W", "window"],
    ["E", "experts"],
  ] as const) {
    const named = pattern.includes(letter);
    if (named && m[key] === undefined) fail(`pattern "${pattern}" has ${letter}; state ${key}`);
    if (!named && m[key] !== undefined) {
      fail(`pattern "${pattern}" has no ${letter}; leave ${key} out`);
    }
  }
  if ((m.window?.every ?? 0) !== 0) {
    fail(`window.every ${m.window!.every}: the pattern says which layers have it; leave it out`);
  }
  if (m.experts !== undefined && (m.experts.denseLayers > 0 || m.experts.every > 1)) {
    fail(
      `experts.denseLayers ${m.experts.denseLayers}, every ${m.experts.every}: the pattern says which layers have experts; leave both out`,
    );
  }
}

function checkMamba(s: Mamba): void {
  for (const key of ["heads", "headDim", "stateDim", "groups", "convolution", "chunk"] as const) {
    whole(`mamba.${key}`, s[key], 1);
  }
  if (typeof s.convolutionBias !== "boolean") {
    fail(`mamba.convolutionBias ${String(s.convolutionBias)} must be true or false`);
  }
  if (s.heads % s.groups !== 0) {
    fail(
      `mamba.heads ${s.heads} is not a multiple of groups ${s.groups}; use groups ${nearestDivisor(s.heads, s.groups)}`,
    );
  }
}

function checkDeltaNet(d: DeltaNet): void {
  for (const key of [
    "keyHeads",
    "valueHeads",
    "keyDim",
    "valueDim",
    "convolution",
    "chunk",
  ] as const) {
    whole(`deltaNet.${key}`, d[key], 1);
  }
  if (d.valueHeads % d.keyHeads !== 0) {
    fail(
      `deltaNet.valueHeads ${d.valueHeads} is not a multiple of keyHeads ${d.keyHeads}; use keyHeads ${nearestDivisor(d.valueHeads, d.keyHeads)}`,
    );
  }
}
