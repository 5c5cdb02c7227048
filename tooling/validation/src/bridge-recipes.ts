/**
 * What Megatron-Bridge's performance recipes of a release say of experts, where a row of its tables says "see the recipe":
 * the dispatcher, whether exchanges run beside computing, what is recorded in graphs, what is recomputed.
 */
import { readFileSync } from "node:fs";
import type { Plan, PlanOptions } from "@trireme/workload";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import { parseTable } from "./csv-table.ts";

type Recipe = Readonly<Record<string, string>>;

const name = "megatron-bridge-recipes.csv";
const recipes: readonly Recipe[] = parseTable(
  readFileSync(new URL(`../data/${name}`, import.meta.url), "utf8"),
  name,
).rows;

/** What the recipe decides. */
export type BridgePlan = Pick<
  PlanOptions,
  "dispatch" | "overlapExpertParallel" | "cudaGraphs" | "recompute"
>;

/** The recipe behind a row; undefined for other tables, models and devices. */
export function bridgePlan(row: CorpusRow): BridgePlan | undefined {
  // The model cards run these recipes too and name no release: the last.
  const release = /^mbcard-.*(performance|weak_scaling)/.test(row.id)
    ? "99"
    : /^mbridge-(\d+\.\d+)/.exec(row.id)?.[1];
  if (release === undefined) return undefined;
  const gpu = text(row.hardware, "gpu").split("-")[0];
  const precision = precisionOf(text(row.parallel, "precision"));
  const alike = recipes.filter(
    (r) =>
      r["model"] === text(row.model, "name") && r["gpu"] === gpu && r["precision"] === precision,
  );
  // A release between two of these is the one before it, or the first.
  const releases = [...new Set(alike.map((r) => r["version"]!))].toSorted();
  const chosen = releases.findLast((v) => v <= release) ?? releases[0];
  const variants = alike.filter((r) => r["version"] === chosen);
  const devices = String(number(row.hardware, "num_gpus") ?? "");
  const batch = String(number(row.parallel, "gbs") ?? "");
  const recipe =
    variants.find((r) => r["gpus"] === devices && r["global_batch"] === batch) ??
    variants.find((r) => r["gpus"] === devices) ??
    variants[0];
  return recipe === undefined ? undefined : planOf(recipe);
}

/**
 * What Megatron-Bridge's recipes of a model say, whatever is measured with them: `moonlight_16b.py` and `gpt_oss.py` leave
 * `apply_rope_fusion` off, as TransformerConfig has it, and the former keeps moments in 16 bits.
 */
export function libraryPlan(row: CorpusRow): Pick<PlanOptions, "fusedRotary" | "momentPrecision"> {
  const bridge = /bridge/.test(text(row.parallel, "framework") + row.dataset);
  const model = text(row.model, "name");
  if (!bridge) return {};
  if (model.startsWith("moonlight")) return { fusedRotary: false, momentPrecision: "bf16" };
  return model.startsWith("gpt-oss") ? { fusedRotary: false } : {};
}

function planOf(r: Recipe): BridgePlan {
  const graphs = r["graphs"];
  return {
    dispatch: r["dispatcher"] === "alltoall" ? "all-to-all" : "unique",
    overlapExpertParallel: r["exchange_overlap"] === "true",
    cudaGraphs: graphs === "all" || graphs === "routing" ? graphs : "none",
    recompute: recomputeOf((r["recompute"] ?? "").split("+")),
  };
}

/** Whole experts, or norms and activations; projections of latents and the few dense layers alone are small. */
function recomputeOf(modules: readonly string[]): Plan["recompute"] {
  if (modules.includes("moe")) return "experts";
  return modules.includes("moe_act") || modules.includes("layernorm") ? "rematerialise" : "none";
}

/** The recipes' word for a format; per-tensor scaling where a row says 8 bits only. */
function precisionOf(stated: string): string {
  if (/nvfp4/.test(stated)) return "nvfp4";
  if (/mxfp8|fp8-mx/.test(stated)) return "mxfp8";
  if (/fp8-sc/.test(stated)) return "fp8-sc";
  return stated.startsWith("fp8") ? "fp8" : "bf16";
}
