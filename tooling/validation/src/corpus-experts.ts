/** Layers of experts measured alone, and the exchange of their tokens. */
import { TriremeError, ms, us } from "@trireme/core";
import { rooflinePricer, stepCosts } from "@trireme/cost-model";
import { type Cluster, defineCluster, hostOf } from "@trireme/topology";
import {
  type Model,
  type Operator,
  type Plan,
  defineModel,
  definePlan,
  expertRows,
  stageOperators,
} from "@trireme/workload";
import { clusterOf } from "./corpus-hardware.ts";
import { type CorpusRow, number, object, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";

/** The outcomes of a row: forward and backward of a layer, or one exchange. */
export function expertOutcomes(row: CorpusRow): Outcome[] {
  const suffix = row.confidence === "high" ? "" : "-unsure";
  const layer: Group = { id: `expert-layer${suffix}`, source: "corpus", kind: "expert layer time" };
  const exchange: Group = {
    id: `expert-exchange${suffix}`,
    source: "corpus",
    kind: "token exchange time",
  };
  const group = number(row.measured, "fwd_ms") === undefined ? exchange : layer;
  const skip = (reason: string): Outcome[] => [{ group, id: row.id, skipped: reason }];
  const known = describeExperts(row);
  if (typeof known === "string") return skip(known);
  const cluster = clusterOf(row);
  if (typeof cluster === "string") return skip(cluster);
  try {
    return group === layer
      ? layerOutcomes(row, group, known, cluster)
      : exchangeOutcomes(row, group, known, cluster);
  } catch (error) {
    if (error instanceof TriremeError) return skip(`refused: ${error.message}`);
    throw error;
  }
}

interface Described {
  readonly model: Model;
  readonly plan: Plan;
}

function describeExperts(row: CorpusRow): Described | string {
  const e = object(row.model, "moe") ?? {};
  const [hidden, experts, active] = [
    number(row.model, "hidden"),
    number(e, "experts"),
    number(e, "topk"),
  ];
  const tokens = number(row.parallel, "tokens_per_rank") ?? number(row.model, "seq");
  const ep = number(row.parallel, "ep");
  if (hidden === undefined) return "missing: hidden";
  if (active === undefined) return "missing: topk";
  if (tokens === undefined) return "missing: tokens of a rank";
  if (ep === undefined) return "missing: ep";
  const ffn = number(e, "ffn") ?? number(row.model, "ffn") ?? hidden;
  const implementation = text(row.parallel, "moe_dispatcher") || text(row.parallel, "impl");
  const low = /fp8/.test(text(row.parallel, "precision"));
  const model = defineModel({
    layers: 1,
    hidden,
    heads: hidden / 128,
    vocab: 1,
    context: tokens,
    activation: "swiglu",
    norm: "rmsnorm",
    bias: false,
    // Low-latency kernels send one copy for each expert, wherever it lies: their number does not matter.
    experts: { count: experts ?? ep, active, ffn, sharedFfn: number(e, "shared_ffn") ?? 0 },
  });
  const plan = definePlan(model, {
    ep,
    dp: ep,
    globalBatch: ep,
    dispatch: /deepep|hybridep/.test(implementation) ? "unique" : "all-to-all",
    ...(low ? { matrixPrecision: "fp8" } : {}),
  });
  return { model, plan };
}

function layerOutcomes(
  row: CorpusRow,
  group: Group,
  { model, plan }: Described,
  cluster: Cluster,
): Outcome[] {
  const { accelerator } = hostOf(cluster, 0);
  const pricer = rooflinePricer(accelerator, "bf16");
  const { communication } = stepCosts({ model, plan, cluster });
  const stage = { stage: 0, firstLayer: 0, layers: 1, embedding: false, head: false };
  const { operators, collectives } = stageOperators(model, plan, stage);
  const time = (passes: readonly Operator["pass"][]): number => {
    let [device, host, exchanged] = [0, 0, 0];
    for (const pass of passes) {
      for (const o of expertPart(
        operators.filter((x) => x.pass === pass),
        model,
      )) {
        device += o.count * pricer.operator(o);
        host += o.count * (pricer.dispatch?.(o) ?? 0);
      }
      for (const c of collectives.filter((x) => x.axis === "ep" && x.pass === pass)) {
        exchanged += c.count * communication.collective(c.kind, c.axis, c.bytes);
      }
    }
    return Math.max(device + exchanged, host);
  };
  return (
    [
      ["fwd_ms", ["forward"]],
      ["bwd_ms", ["input-gradient", "weight-gradient"]],
    ] as const
  ).map(([key, passes]): Outcome => {
    const id = `${row.id}#${key.slice(0, 3)}`;
    const measured = number(row.measured, key);
    return measured === undefined
      ? { group, id, skipped: `missing: ${key}` }
      : { group, id, measured: ms(measured), predicted: time(passes) };
  });
}

/** From the router to what comes in front of the residual sum. */
function expertPart(operators: readonly Operator[], m: Model): readonly Operator[] {
  const router = operators.findIndex(
    (o) => o.kind === "gemm" && o.shape.includes(m.experts!.count),
  );
  const sum = operators.findLastIndex((o) => o.kind === "add");
  return operators.slice(router, sum < 0 ? undefined : sum);
}

function exchangeOutcomes(
  row: CorpusRow,
  group: Group,
  { model, plan }: Described,
  cluster: Cluster,
): Outcome[] {
  const micro = number(row.measured, "latency_us");
  if (micro === undefined) {
    return [{ group, id: row.id, skipped: "missing: bytes behind the logical bandwidth" }];
  }
  const operation = text(row.parallel, "op") || text(row.measured, "op");
  const stated = text(row.parallel, "precision");
  const element = stated === "fp8" && operation === "dispatch" ? 1 : 2;
  const bytes = expertRows(model.experts!, plan).exchanged * model.hidden * element;
  const seen =
    row.notes.includes("pure RDMA") && row.id.includes("-orig-") ? apart(cluster) : cluster;
  const { communication } = stepCosts({ model, plan, cluster: seen });
  const predicted = communication.collective("all-to-all", "ep", bytes);
  const detail = `${operation}, ${plan.dispatch}`;
  return [{ group, id: row.id, measured: us(micro), predicted, detail }];
}

/** A cluster as kernels see it that send everything through the network cards, to devices of the same host too. */
function apart(cluster: Cluster): Cluster {
  const { scaleUpHosts: _, interior: __, ...host } = hostOf(cluster, 0);
  const single = { ...host, accelerators: 1, concurrency: 1 };
  return defineCluster({ host: single, hosts: cluster.devices });
}
