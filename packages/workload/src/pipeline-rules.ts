/** The rules of a plan's pipeline: chunks that its schedule can lead, and stages that have something to do. */
import { TriremeError } from "@trireme/core";
import type { Model } from "./model.ts";
import type { Plan } from "./plan.ts";

function fail(message: string): never {
  throw new TriremeError("PLAN", message);
}

/** Schedules that lead any number of chunks a rank, and those of two by their nature. */
const looped: ReadonlySet<string> = new Set([
  "interleaved",
  "dfs-bfs",
  "looped-bfs",
  "interleaved-zero-bubble",
]);
const twofold: ReadonlySet<string> = new Set(["zb-v", "v-half", "v-min", "dualpipe-v"]);
/** Schedules that lead microbatches in groups of one for each rank or more. */
const groups: ReadonlySet<string> = new Set(["interleaved", "interleaved-zero-bubble"]);

/** Chunks of a rank that the schedule can lead. */
function checkChunks({ vpp, schedule }: Plan): void {
  if (twofold.has(schedule) && vpp !== 2) {
    fail(`vpp ${vpp}, but schedule ${schedule} has two chunks a rank; use vpp 2`);
  }
  if (vpp > 1 && !looped.has(schedule) && !twofold.has(schedule)) {
    fail(
      `vpp ${vpp} needs a schedule of several chunks, not ${schedule}; use vpp 1 or schedule interleaved`,
    );
  }
}

/** Throws TriremeError "PLAN" for the first rule of its pipeline that `p` breaks on `m`. */
export function checkPipeline(m: Model, p: Plan): void {
  const stages = p.pp * p.vpp;
  checkChunks(p);
  if (p.vpp > 1 && p.pp === 1) fail(`vpp ${p.vpp} needs pp 2 or more, not 1; use vpp 1`);
  const count = p.globalBatch / (p.dp * p.microbatch);
  if (p.vpp > 1 && groups.has(p.schedule) && count < p.pp) {
    fail(`${p.schedule}: ${count} microbatches are fewer than pp ${p.pp}; use ${p.pp} or more`);
  }
  if (p.pipelines !== undefined) return;
  if (p.stageLayers === undefined) {
    checkSpread(m, p, stages);
    return;
  }
  for (const key of ends) {
    if (p[key]) fail(`${key} spreads layers, and stageLayers says where they are; leave one out`);
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

/** What may count as a layer at the ends of the model. */
const ends = ["accountForEmbedding", "accountForLoss"] as const;

/** Each stage gets a layer, or an end that counts as one. */
function checkSpread(m: Model, p: Plan, stages: number): void {
  const counted = ends.filter((key) => p[key]);
  const units = m.layers + counted.length;
  if (units >= stages) return;
  const others = ends.filter((key) => !p[key]);
  const more = stages - units;
  const end = more <= others.length ? `, or set ${others.slice(0, more).join(" and ")}` : "";
  const what = counted.map((key) => (key === "accountForLoss" ? "loss" : "embedding"));
  fail(
    `${["layers", ...what].join(" and ")} ${units} are fewer than pp ${p.pp} × vpp ${p.vpp} = ${stages} stages; the most is ${units} stages${end}`,
  );
}
