/** The rules of a plan, in the order in which a person would want to hear of them. */
import { TriremeError, nearestName } from "@trireme/core";
import { type Model, nearestDivisor } from "./model.ts";
import type { Plan } from "./plan.ts";

const counts = ["tp", "pp", "dp", "cp", "vpp", "microbatch", "globalBatch", "sequence"] as const;

const choices = {
  schedule: ["gpipe", "1f1b", "interleaved"],
  recompute: ["none", "selective", "operators", "full"],
  precision: ["fp32", "bf16", "fp16"],
  gradientPrecision: ["fp32", "bf16", "fp16"],
} as const;

function fail(message: string): never {
  throw new TriremeError("PLAN", message);
}

/** Throws TriremeError "PLAN" for the first rule that `p` breaks on `m`. */
export function checkPlan(m: Model, p: Plan): void {
  checkValues(p);
  checkTensor(m, p);
  checkBatch(m, p);
  checkPipeline(m, p);
}

function checkValues(p: Plan): void {
  for (const key of counts) {
    if (!Number.isSafeInteger(p[key]) || p[key] < 1) {
      fail(`${key} ${p[key]} must be a whole number, 1 or more`);
    }
  }
  for (const key of ["schedule", "recompute", "precision", "gradientPrecision"] as const) {
    const known: readonly string[] = choices[key];
    if (known.includes(p[key])) continue;
    const near = nearestName(p[key], known);
    fail(
      `${key} "${p[key]}" is not one of ${known.join(", ")}${near === undefined ? "" : `; did you mean "${near}"?`}`,
    );
  }
  if (p.matrixPrecision !== undefined && !["fp8", "fp4"].includes(p.matrixPrecision)) {
    fail(
      `matrixPrecision "${p.matrixPrecision}" is not one of fp8, fp4; leave it out to use precision`,
    );
  }
  if (p.flashVersion !== undefined && ![1, 2, 3].includes(p.flashVersion)) {
    fail(`flashVersion ${p.flashVersion} is not 1, 2 or 3; leave it out for the device's best`);
  }
  if (![0, 1, 2, 3].includes(p.zero)) fail(`zero ${p.zero} is not a ZeRO stage: 0, 1, 2 or 3`);
  if (!(p.dropout >= 0 && p.dropout < 1)) fail(`dropout ${p.dropout} must be in [0, 1)`);
}

function checkTensor(m: Model, p: Plan): void {
  for (const [what, n] of [
    ["heads", m.heads],
    ["kvHeads", m.kvHeads],
    ["ffn", m.ffn],
  ] as const) {
    if (n % p.tp !== 0) {
      fail(
        `${what} ${n} is not a multiple of tp ${p.tp}; the nearest legal tp is ${nearestDivisor(n, p.tp)}`,
      );
    }
  }
  // Causal work is even when each rank takes one chunk from the front and one from the back.
  const chunks = (p.sequenceParallel ? p.tp : 1) * (p.cp > 1 ? 2 * p.cp : 1);
  if (p.sequence % chunks !== 0) {
    const near = Math.max(1, Math.round(p.sequence / chunks)) * chunks;
    const splits =
      p.cp > 1
        ? `2 cp ${p.cp}${p.sequenceParallel ? ` × tp ${p.tp}` : ""} = ${chunks}`
        : `tp ${p.tp}`;
    fail(
      `${p.cp > 1 ? "context parallel" : "sequenceParallel"}: sequence ${p.sequence} is not a multiple of ${splits}; the nearest is ${near}`,
    );
  }
}

function checkBatch(m: Model, p: Plan): void {
  const unit = p.dp * p.microbatch;
  if (p.globalBatch % unit !== 0) {
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

function checkPipeline(m: Model, p: Plan): void {
  const stages = p.pp * p.vpp;
  if (p.vpp > 1 && p.schedule !== "interleaved") {
    fail(
      `vpp ${p.vpp} needs the interleaved schedule, not ${p.schedule}; use vpp 1 or schedule interleaved`,
    );
  }
  if (p.vpp > 1 && p.pp === 1) fail(`vpp ${p.vpp} needs pp 2 or more, not 1; use vpp 1`);
  const count = p.globalBatch / (p.dp * p.microbatch);
  if (p.vpp > 1 && count % p.pp !== 0) {
    const near = Math.max(1, Math.round(count / p.pp)) * p.pp;
    fail(
      `interleaved: ${count} microbatches are not a multiple of pp ${p.pp}; the nearest is ${near}`,
    );
  }
  if (p.stageLayers === undefined) {
    if (m.layers < stages) {
      fail(
        `layers ${m.layers} are fewer than pp ${p.pp} × vpp ${p.vpp} = ${stages} stages; the most is ${m.layers} stages`,
      );
    }
    return;
  }
  const total = p.stageLayers.reduce((a, b) => a + b, 0);
  if (p.stageLayers.length !== stages) {
    fail(
      `stageLayers has ${p.stageLayers.length} entries, but pp ${p.pp} × vpp ${p.vpp} = ${stages} stages; give ${stages}`,
    );
  }
  if (p.stageLayers.some((n) => !Number.isSafeInteger(n) || n < 0) || total !== m.layers) {
    fail(
      `stageLayers ${p.stageLayers.join("+")} = ${total}, but ${m.name} has ${m.layers} layers; they must be whole numbers that sum to ${m.layers}`,
    );
  }
}
