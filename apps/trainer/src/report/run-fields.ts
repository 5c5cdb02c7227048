/** A run in a few lines: what is computed, on what, how it is split. */
import { formatBytes, formatCount, formatFlopRate } from "@trireme/core";
import type { ResolvedRun } from "@trireme/run";
import { hostOf, peakOf } from "@trireme/topology";
import { type Plan, microbatches, parameters, ranks } from "@trireme/workload";
import type { LoadedRun } from "../load-run.ts";
import type { Texts } from "../texts.ts";
import type { Field } from "./fields.ts";

/** Model, text, hardware and plan of a run. */
export function runFields({ run, local, texts }: LoadedRun): readonly Field[] {
  const fields: Field[] = [
    { label: "model", value: modelLine(run) },
    { label: local ? "machine" : "cluster", value: local ? machineLine(run) : clusterLine(run) },
    { label: "plan", value: planLine(run.plan) },
  ];
  if (texts !== undefined) fields.splice(1, 0, { label: "text", value: textLine(texts) });
  return fields;
}

function modelLine({ model }: ResolvedRun): string {
  const { layers, hidden, heads, kvHeads, vocab } = model;
  const grouped = kvHeads === heads ? "" : ` (${kvHeads} for keys)`;
  const counts = parameters(model);
  const total = formatCount(counts.total);
  const experts =
    model.experts === undefined
      ? ""
      : `, ${model.experts.active} of ${model.experts.count} experts`;
  const active =
    counts.active === counts.total ? "" : `, ${formatCount(counts.active)} met by a token`;
  return `${model.name}: ${layers} layers, ${hidden} wide, ${heads} heads${grouped}${experts}, vocabulary ${vocab}, ${total} parameters${active}`;
}

function textLine({ train, documents, validation }: Texts): string {
  const held =
    validation === undefined
      ? "none"
      : `${documents.validation} (${formatCount(validation.tokens.length)})`;
  return `${documents.train} documents (${formatCount(train.tokens.length)} tokens), ${held} held out for validation`;
}

function machineLine(run: ResolvedRun): string {
  const { concurrency } = hostOf(run.cluster, 0);
  const count = ranks(run.plan);
  const sharing = count > concurrency ? `, shared by ${count} ranks` : "";
  const { kernels } = run.engine;
  const by = kernels === "wasm" ? "" : `; kernels ${kernels}`;
  return `this one: ${concurrency} core${concurrency === 1 ? "" : "s"}${sharing}${by}`;
}

function clusterLine({ cluster, plan }: ResolvedRun): string {
  const { accelerator, name } = hostOf(cluster, 0);
  const peak = peakOf(accelerator, plan.precision);
  const rate = peak === undefined ? "" : `, ${formatFlopRate(peak)} ${plan.precision}`;
  const hosts = `${cluster.hosts} × ${name}`;
  return `${hosts} = ${cluster.devices} × ${accelerator.name} (${formatBytes(accelerator.memory)}${rate})`;
}

function planLine(plan: Plan): string {
  const { tp, cp, pp, dp, vpp, microbatch, sequence, schedule, recompute, zero } = plan;
  const degrees = [
    ...(tp > 1 ? [`tp ${tp}${plan.sequenceParallel ? " with sequence" : ""}`] : []),
    ...(cp > 1 ? [`cp ${cp}`] : []),
    ...(pp > 1 ? [`pp ${pp}${vpp > 1 ? ` × ${vpp} chunks` : ""}`] : []),
    ...(dp > 1 || tp * cp * pp === 1 ? [`dp ${dp}`] : []),
  ].join(" × ");
  const experts = [
    ...(plan.ep > 1 ? [`ep ${plan.ep}`] : []),
    ...(plan.etp > 1 ? [`etp ${plan.etp}`] : []),
  ].join(" × ");
  const folded = experts === "" ? "" : `, experts ${experts}`;
  const pipeline = pp > 1 ? `, ${schedule}` : "";
  const m = microbatches(plan);
  const batch = `${m} microbatch${m === 1 ? "" : "es"} of ${microbatch} × ${sequence} tokens`;
  const saving = `${recompute === "none" ? "" : `, recompute ${recompute}`}${zero === 0 ? "" : `, ZeRO-${zero}`}`;
  const products =
    plan.matrixPrecision === undefined ? "" : ` with ${plan.matrixPrecision} products`;
  return `${degrees}${folded}${pipeline}, ${batch}, ${plan.precision}${products}${saving}`;
}
