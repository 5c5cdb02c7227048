/**
 * One pass of new tokens through a model on tp devices: the workload's forward kernels, with attention to what is
 * cached.
 */
import type { Bytes, Seconds } from "@trireme/core";
import {
  type LayerForm,
  type Model,
  type Operator,
  type Plan,
  countForms,
  firstLayerOf,
  isScan,
  layerForms,
  stageOperators,
  vocabShard,
} from "@trireme/workload";
import type { Communication } from "../groups.ts";
import type { Pricer } from "../pricer.ts";
import { cachedAttention, cachedTokens, stateUpdate } from "./cache.ts";

/** Seconds of a pass by cause. */
export interface PassTime {
  readonly compute: Seconds;
  /** All-reduces between tensor-parallel ranks. */
  readonly tensorParallel: Seconds;
}

/** What a pass is priced from; `plan` has the new tokens of all sequences as its microbatch. */
export interface ForwardPass {
  readonly model: Model;
  readonly plan: Plan;
  readonly pricer: Pricer;
  readonly communication: Communication;
  /** Sequences, and rows of logits that are computed. */
  readonly batch: number;
  readonly logits: number;
  /** New tokens of each sequence that attend to a cache; undefined: they attend to themselves. */
  readonly queries?: number;
  /** Tokens of a sequence in the cache, where there is one. */
  readonly cached?: number;
  /** Of keys and values. */
  readonly cacheElement: Bytes;
  /** Kernels are launched from a graph: only the device counts. */
  readonly graphs: boolean;
}

/** The time of a pass. */
export function passTime(o: ForwardPass): PassTime {
  const { model: m, plan: p, pricer, communication } = o;
  let [device, host, tensorParallel] = [0, 0, 0];
  const add = (op: Operator, count: number): void => {
    device += count * op.count * pricer.operator(op);
    host += count * op.count * (pricer.dispatch?.(op) ?? 0);
  };
  const layer = { stage: 0, embedding: false, head: false };
  const blocks = layerForms(m).map((form, i) => ({
    form,
    layers: countForms(m, 0, m.layers)[i]!,
    stage: { ...layer, firstLayer: firstLayerOf(m, i), layers: 1 },
  }));
  const table = {
    form: undefined,
    layers: 1,
    stage: { ...layer, firstLayer: 0, layers: 0, embedding: true },
  };
  for (const { form, layers, stage } of [table, ...blocks]) {
    const part = stageOperators(m, p, stage);
    const recurrent = o.queries !== undefined && form !== undefined && isScan(form.mixer);
    for (const op of part.operators) {
      if (op.pass !== "forward" || (recurrent && op.kind === "scan")) continue;
      add(served(o, op, form), layers);
    }
    if (recurrent) {
      const { tp } = p;
      add(stateUpdate(m, form.mixer, { tp, batch: o.batch, queries: o.queries }), layers);
    }
    for (const c of part.collectives) {
      if (c.pass !== "forward" || c.axis === "dp" || c.axis === "edp") continue;
      tensorParallel += layers * c.count * communication.collective(c.kind, c.axis, c.bytes);
    }
  }
  add(head(m, p, o.logits), 1);
  return { compute: o.graphs ? device : Math.max(device, host), tensorParallel };
}

function served(o: ForwardPass, op: Operator, form: LayerForm | undefined): Operator {
  if (op.kind === "attention" && o.queries !== undefined && form !== undefined) {
    return cachedAttention(o.model, {
      tp: o.plan.tp,
      batch: o.batch,
      queries: o.queries,
      cached: cachedTokens(o.model, form, o.cached ?? 0),
      element: o.cacheElement,
    });
  }
  return op.kind === "grouped-gemm" ? touched(op) : op;
}

/** Few tokens reach few experts, and only their weights are read. */
function touched(op: Operator): Operator {
  const [experts, rows, n, k] = op.shape;
  const reached = Math.ceil(experts! * (1 - (1 - 1 / experts!) ** rows!));
  if (reached === experts) return op;
  const weights = experts! * n! * k!;
  const whole = rows! * (n! + k!) + weights;
  const shape = [reached, rows!, n!, k!];
  return {
    ...op,
    shape,
    key: `${op.key.slice(0, op.key.lastIndexOf("/"))}/${shape.join("x")}`,
    bytes: op.bytes * (1 - (weights / whole) * (1 - reached / experts!)),
  };
}

/** Logits of the rows that a token is chosen from. */
function head(m: Model, p: Plan, rows: number): Operator {
  const n = vocabShard(m, p);
  const shape = [1, rows, n, m.hidden];
  return {
    key: `gemm/${p.precision}/forward/${shape.join("x")}`,
    kind: "gemm",
    form: p.precision,
    pass: "forward",
    shape,
    flops: 2 * rows * n * m.hidden,
    bytes: 2 * (rows * m.hidden + n * m.hidden + rows * n),
    count: 1,
  };
}
