/**
 * Configuration trees of projects that stand on Megatron-Core: the same settings as Megatron-LM's
 * arguments, under other names and in groups. One table of a format serves both ways.
 */
import type { ResolvedRun } from "../resolved.ts";
import { fromMegatron } from "./from-megatron.ts";
import type { Imported, Unsupported } from "./interchange.ts";
import type { Settings } from "./megatron-experts.ts";
import type { SettingTree } from "./setting-tree.ts";
import { megatronSettings } from "./to-megatron.ts";

/** A setting by its path in the tree and its Megatron argument without dashes. */
export interface Row {
  readonly path: string;
  readonly option: string;
  /** A flag that is there or not, or one whose meaning is the other way round; left out, a value. */
  readonly kind?: "flag" | "inverse";
  /** Values of the tree by those of the argument, where they differ. */
  readonly values?: Readonly<Record<string, string>>;
}

/** A configuration written, and what it cannot say. */
export interface MegatronTree {
  readonly config: Readonly<Record<string, unknown>>;
  readonly unsupported: readonly Unsupported[];
}

/** Fields of a run by the arguments that say them, where some format has no setting for one. */
const fields: Readonly<Record<string, string>> = {
  "moe-shared-expert-intermediate-size": "model.experts.sharedFfn",
  "moe-shared-expert-gate": "model.experts.sharedGate",
  "moe-layer-freq": "model.experts.denseLayers",
  "moe-router-enable-expert-bias": "model.experts.selectionBias",
  "moe-router-bias-update-rate": "router.biasRate",
  "moe-token-drop-policy": "router.dropPolicy",
  "moe-ffn-hidden-size": "model.experts.ffn",
  "multi-latent-attention": "model.latent",
  "window-attn-skip-freq": "model.window.every",
  "mtp-num-layers": "model.prediction",
  "softmax-type": "model.attentionSinks",
  "activation-func-clamp-value": "model.activationClamp",
  "cp-comm-type": "plan.contextExchange",
  "moe-token-dispatcher-type": "plan.dispatch",
  "moe-expert-capacity-factor": "plan.expertCapacity",
  "expert-tensor-parallel-size": "plan.etp",
  "moe-grouped-gemm": "plan.groupedKernel",
  "overlap-moe-expert-parallel-comm": "plan.overlapExpertParallel",
  "cuda-graph-impl": "plan.cudaGraphs",
  "optimizer-cpu-offload": "plan.offload",
  "exp-avg-dtype": "plan.momentPrecision",
  "use-tp-pp-dp-mapping": "plan.order",
  "pipeline-model-parallel-layout": "plan.stageLayers",
  "no-scatter-gather-tensors-in-pipeline": "plan.scatterGather",
  "use-megatron-fsdp": "plan.zero",
  "attention-backend": "plan.flashAttention",
  "save-interval": "checkpoint.every",
  save: "checkpoint.directory",
};

/**
 * Writes a run's Megatron settings by a table.
 * @param handled Arguments that the format writes by itself.
 * @param project What the project is called where it lacks a setting.
 */
export function toTree(
  run: ResolvedRun,
  rows: readonly Row[],
  handled: ReadonlySet<string>,
  project: string,
): MegatronTree & { readonly settings: Settings } {
  const { settings, unsupported } = megatronSettings(run);
  const config: Record<string, unknown> = {};
  for (const { path, option, kind, values } of rows) {
    const value = settings[option];
    if (kind !== undefined) put(config, path, (value === true) === (kind === "flag"));
    else if (value !== undefined) put(config, path, listed(values?.[String(value)] ?? value));
  }
  const known = new Set([...rows.map((row) => row.option), ...handled]);
  const lacking = Object.entries(settings)
    .filter(([option, value]) => value !== undefined && value !== false && !known.has(option))
    .filter(([option]) => Object.hasOwn(fields, option))
    .map(([option, value]) => ({
      option: fields[option]!,
      value,
      reason: `has no setting in ${project}`,
    }));
  return { config, settings, unsupported: [...unsupported, ...lacking] };
}

/** Several words are a list. */
function listed(value: string | number | boolean): unknown {
  return typeof value === "string" && value.includes(" ") ? value.split(" ") : value;
}

/** Puts a value at a dotted path. */
export function put(config: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split(".");
  let group = config;
  for (const key of keys.slice(0, -1)) {
    const next: Record<string, unknown> = {};
    const found = group[key];
    if (isOpen(found)) group = found;
    else {
      group[key] = next;
      group = next;
    }
  }
  group[keys.at(-1)!] = value;
}

function isOpen(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads a tree as the arguments that its table names, and these as a run.
 * @param extra Arguments that the format has found by itself.
 */
export function fromTree(
  tree: SettingTree,
  rows: readonly Row[],
  extra: readonly string[],
): Imported {
  const words = [...extra];
  for (const { path, option, kind, values } of rows) {
    if (kind !== undefined) {
      const flag = tree.flag(path);
      if (flag !== undefined && flag === (kind === "flag")) words.push(`--${option}`);
      continue;
    }
    const value = tree.value(path);
    if (value === undefined) continue;
    const several: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (several.length === 0 || several.some((one) => typeof one === "object")) {
      tree.refuse(path, value, "must be a number or text");
      continue;
    }
    const texts = several.map((one) => {
      const text = String(one);
      const found = Object.entries(values ?? {}).find(([, written]) => written === text);
      return found?.[0] ?? text;
    });
    words.push(`--${option}`, ...texts);
  }
  const { description, unsupported } = fromMegatron(words);
  const pathOf = new Map(rows.map((row) => [`--${row.option}`, row.path]));
  const named = unsupported.map((u) => ({ ...u, option: pathOf.get(u.option) ?? u.option }));
  return { description, unsupported: [...named, ...tree.unsupported()] };
}
