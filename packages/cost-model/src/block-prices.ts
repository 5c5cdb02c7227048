/**
 * The kernels of a plan, priced once per shape. A stage is an embedding, some layers of each form and a head,
 * or some of these, so that a few blocks price all stages of all plans that shape their kernels alike.
 */
import type { Seconds } from "@trireme/core";
import {
  type CollectiveOperator,
  type Model,
  type Operator,
  type Plan,
  type Stage,
  type StageOperators,
  countForms,
  firstLayerOf,
  layerFormAt,
  layerForms,
  recomputedLayers,
  stageOperators,
} from "@trireme/workload";
import type { Communication } from "./groups.ts";
import type { Pricer } from "./pricer.ts";

/** The passes of a microbatch; what comes once per step ("update") is priced apart. */
export const microbatchPasses: readonly [
  "forward",
  "recompute",
  "input-gradient",
  "weight-gradient",
] = ["forward", "recompute", "input-gradient", "weight-gradient"];

export type MicrobatchPass = (typeof microbatchPasses)[number];

/**
 * A part of stages: the embedding, one layer of a form, recomputed or not, the head, or a rank's part of the
 * vocabulary.
 */
interface Block {
  readonly stage: Stage;
  readonly plan: Plan;
}

/** The blocks of a plan's stages, in order of execution. */
function blocksOf(m: Model, p: Plan): readonly Block[] {
  const { recomputeLayers: _, ...whole } = p;
  const ends = { stage: 0, firstLayer: 0, layers: 0 };
  const layers = (plan: Plan): Block[] =>
    layerForms(m).map((_form, form) => ({
      stage: {
        ...ends,
        firstLayer: firstLayerOf(m, form),
        layers: 1,
        embedding: false,
        head: false,
      },
      plan,
    }));
  return [
    { stage: { ...ends, embedding: true, head: false }, plan: whole },
    ...layers(whole),
    // What a plan recomputes only some layers of, it keeps of the others.
    ...(partial(p) ? layers({ ...whole, recompute: "none" }) : []),
    { stage: { ...ends, embedding: false, head: true }, plan: whole },
    ...(p.vocabulary === undefined
      ? []
      : [
          {
            stage: { ...ends, embedding: false, head: false, vocabulary: true } as const,
            plan: whole,
          },
        ]),
  ];
}

function partial(p: Plan): boolean {
  return p.recompute !== "none" && p.recomputeLayers !== undefined;
}

/** How often each block of the plan's comes in a stage. */
export function repeatsOf(m: Model, p: Plan, s: Stage): readonly number[] {
  const embedding = s.embedding ? 1 : 0;
  const ends = [s.head ? 1 : 0, ...(p.vocabulary === undefined ? [] : [s.vocabulary ? 1 : 0])];
  if (!partial(p)) return [embedding, ...countForms(m, s.firstLayer, s.layers), ...ends];
  const again = recomputedLayers(p, s.layers);
  return [
    embedding,
    ...countForms(m, s.firstLayer, again),
    ...countForms(m, s.firstLayer + again, s.layers - again),
    ...ends,
  ];
}

/** Kernels of one pass in order of execution: those of the embedding, of one layer, of the head. */
export interface PassPrices {
  /** One execution. */
  readonly seconds: Float64Array;
  /** Launching it once. */
  readonly dispatch: Float64Array;
  /** Executions in one block. */
  readonly count: Float64Array;
  /** Place among the plan's blocks. */
  readonly block: Uint8Array;
  /** 1 for a matrix product. */
  readonly product: Uint8Array;
  /** A layer's first attention kernel; 0 without one. */
  readonly attention: Seconds;
}

/** A collective inside a stage, for every microbatch. */
export interface CollectivePrice {
  readonly operator: CollectiveOperator;
  readonly seconds: Seconds;
  /** Executions by block. */
  readonly counts: readonly number[];
}

/** The optimizer's kernel, in proportion to the parameters. */
interface UpdatePrice {
  /** Time of one execution over so many parameters. */
  readonly seconds: (parameters: number) => Seconds;
}

/** All kernels and collectives of one shape. */
export interface BlockPrices {
  readonly passes: Readonly<Record<MicrobatchPass, PassPrices>>;
  readonly collectives: readonly CollectivePrice[];
  /** Which blocks are layers with experts. */
  readonly mixed: readonly boolean[];
  readonly update: UpdatePrice;
}

/** Times of optimizer kernels by what they do to a parameter, then by the number of parameters. */
export type UpdateTimes = Map<string, Map<number, Seconds>>;

/** Prices the blocks of `p`. */
export function blockPrices(
  m: Model,
  p: Plan,
  pricer: Pricer,
  network: Communication,
  updates: UpdateTimes,
): BlockPrices {
  const blocks = blocksOf(m, p);
  const parts = blocks.map((block) => stageOperators(m, block.plan, block.stage));
  const all = parts
    .flatMap((part) => part.collectives)
    .filter((c) => c.pass !== "update" && c.axis !== "dp" && c.axis !== "edp");
  // The order in which a stage lists them: sums come out the same to the last digit.
  const collectives = (["tp", "cp", "ep", "etp"] as const).flatMap((axis) =>
    all.filter((c) => c.axis === axis),
  );
  return {
    passes: {
      forward: passPrices("forward", parts, pricer, p),
      recompute: passPrices("recompute", parts, pricer, p),
      "input-gradient": passPrices("input-gradient", parts, pricer, p),
      "weight-gradient": passPrices("weight-gradient", parts, pricer, p),
    },
    collectives: collectives
      .filter((c, i) => collectives.findIndex((x) => same(x, c)) === i)
      .map((c) => ({
        operator: c,
        seconds: network.collective(c.kind, c.axis, c.bytes),
        counts: parts.map((part) => countIn(part, c)),
      })),
    mixed: blocks.map((b) => b.stage.layers > 0 && isMixed(m, b.stage.firstLayer)),
    update: updatePrice(
      parts.flatMap((part) => part.operators),
      p.precision,
      pricer,
      updates,
    ),
  };
}

function isMixed(m: Model, layer: number): boolean {
  return layerForms(m)[layerFormAt(m, layer)]!.experts;
}

/** Launched from a recorded graph. */
function recorded(graphs: Plan["cudaGraphs"], o: Operator): boolean {
  return graphs === "all" || (graphs === "routing" && isRouting(o));
}

/**
 * How often the host waits for what a router chose, to launch what is sized by it: the exchange, and products that are
 * called expert by expert (token_dispatcher.py and experts.py of Megatron-LM). Capacities are known beforehand,
 * backward knows what forward learnt, and a recorded graph leaves the counts on the device.
 */
function readings(p: Plan, o: Operator, pass: MicrobatchPass): number {
  if (o.kind !== "routing" || (pass !== "forward" && pass !== "recompute")) return 0;
  if (p.expertCapacity !== undefined || p.cudaGraphs === "all") return 0;
  return (p.ep > 1 ? 1 : 0) + (p.groupedKernel ? 0 : 1);
}

function isRouting(o: Operator): boolean {
  return o.kind === "routing" || o.kind === "permutation";
}

function passPrices(
  pass: MicrobatchPass,
  parts: readonly StageOperators[],
  pricer: Pricer,
  plan: Plan,
): PassPrices {
  const operators: Operator[] = [];
  const block: number[] = [];
  for (const [i, part] of parts.entries()) {
    for (const o of part.operators) {
      if (o.pass !== pass) continue;
      operators.push(o);
      block.push(i);
    }
  }
  const size = operators.length;
  const seconds = new Float64Array(size);
  const dispatch = new Float64Array(size);
  const count = new Float64Array(size);
  const product = new Uint8Array(size);
  let attention: Seconds | undefined;
  for (const [i, o] of operators.entries()) {
    seconds[i] = pricer.operator(o) + readings(plan, o, pass) * (pricer.roundTrip ?? 0);
    dispatch[i] = recorded(plan.cudaGraphs, o) ? 0 : (pricer.dispatch?.(o) ?? 0);
    count[i] = o.count;
    product[i] = o.kind === "gemm" ? 1 : 0;
    if (o.kind === "attention") attention ??= seconds[i];
  }
  return {
    seconds,
    dispatch,
    count,
    block: new Uint8Array(block),
    product,
    attention: attention ?? 0,
  };
}

function countIn(
  part: { readonly collectives: readonly CollectiveOperator[] },
  c: CollectiveOperator,
): number {
  return part.collectives.reduce((n, x) => n + (same(x, c) ? x.count : 0), 0);
}

function same(a: CollectiveOperator, b: CollectiveOperator): boolean {
  return a.kind === b.kind && a.axis === b.axis && a.pass === b.pass && a.bytes === b.bytes;
}

/** The update kernel of a block, stretched to any number of parameters; each number is priced once. */
function updatePrice(
  operators: readonly Operator[],
  precision: Plan["precision"],
  pricer: Pricer,
  updates: UpdateTimes,
): UpdatePrice {
  const all = operators.filter((o) => o.pass === "update");
  // Every block updates its parameters by the same kernel.
  const kernels = all.filter((o, i) => all.findIndex((x) => x.form === o.form) === i);
  const signature = kernels.map(
    (o) => `${o.key.split("/", 3).join("/")} ${perParameter(o, o.bytes)}`,
  );
  const name = [precision, ...signature].join(" ");
  let known = updates.get(name);
  if (known === undefined) {
    known = new Map();
    updates.set(name, known);
  }
  const times = known;
  return {
    seconds: (parameters) => {
      let time = times.get(parameters);
      if (time === undefined) {
        time = updateTime(kernels, parameters, pricer);
        times.set(parameters, time);
      }
      return time;
    },
  };
}

function updateTime(kernels: readonly Operator[], parameters: number, pricer: Pricer): Seconds {
  let device = 0;
  let host = 0;
  for (const o of kernels) {
    const scaled: Operator = {
      ...o,
      key: `${o.key.slice(0, o.key.lastIndexOf("/"))}/${parameters}`,
      shape: [parameters],
      flops: perParameter(o, o.flops) * parameters,
      bytes: perParameter(o, o.bytes) * parameters,
    };
    device += o.count * pricer.operator(scaled);
    host += o.count * (pricer.dispatch?.(scaled) ?? 0);
  }
  return Math.max(device, host);
}

/** Operations and bytes are whole numbers for each parameter. */
function perParameter(o: Operator, amount: number): number {
  return Math.round(amount / o.shape[0]!);
}
