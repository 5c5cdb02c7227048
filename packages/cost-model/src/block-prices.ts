/**
 * The kernels of a plan, priced once per shape. A stage is an embedding, some equal layers and a head, or
 * some of these, so that three blocks price all stages of all plans that shape their kernels alike.
 */
import type { Seconds } from "@trireme/core";
import {
  type CollectiveOperator,
  type Model,
  type Operator,
  type Pass,
  type Plan,
  type Stage,
  type StageOperators,
  stageOperators,
  stageParameters,
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

/** One block of each kind, in order of execution. */
const blocks = {
  embedding: { stage: 0, firstLayer: 0, layers: 0, embedding: true, head: false },
  layer: { stage: 0, firstLayer: 0, layers: 1, embedding: false, head: false },
  head: { stage: 0, firstLayer: 0, layers: 0, embedding: false, head: true },
} as const satisfies Record<string, Stage>;

/** Kernels of one pass in order of execution: those of the embedding, of one layer, of the head. */
export interface PassPrices {
  /** One execution. */
  readonly seconds: Float64Array;
  /** Launching it once. */
  readonly dispatch: Float64Array;
  /** Executions in one block. */
  readonly count: Float64Array;
  /** 0 embedding, 1 layer, 2 head. */
  readonly block: Uint8Array;
  /** 1 for a matrix product. */
  readonly product: Uint8Array;
  /** A layer's first attention kernel; 0 without one. */
  readonly attention: Seconds;
}

/** A tensor- or context-parallel collective. */
export interface CollectivePrice {
  readonly operator: CollectiveOperator;
  readonly seconds: Seconds;
  /** Executions by block: embedding, layer, head. */
  readonly counts: readonly [number, number, number];
}

/** A collective over the replicas for every microbatch (ZeRO-3), in proportion to the parameters. */
export interface ShardingCollective {
  readonly kind: CollectiveOperator["kind"];
  readonly pass: Pass;
  readonly count: number;
  readonly bytesPerParameter: number;
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
  readonly sharding: readonly ShardingCollective[];
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
  const parts = Object.values(blocks).map((s) => stageOperators(m, p, s));
  const all = parts.flatMap((part) => part.collectives).filter((c) => c.pass !== "update");
  // The order in which a stage lists them: sums come out the same to the last digit.
  const collectives = [
    ...all.filter((c) => c.axis === "tp"),
    ...all.filter((c) => c.axis === "cp"),
  ];
  const parameters = stageParameters(m, p, blocks.layer).total;
  return {
    passes: {
      forward: passPrices("forward", parts, pricer),
      recompute: passPrices("recompute", parts, pricer),
      "input-gradient": passPrices("input-gradient", parts, pricer),
      "weight-gradient": passPrices("weight-gradient", parts, pricer),
    },
    collectives: collectives
      .filter((c, i) => collectives.findIndex((x) => same(x, c)) === i)
      .map((c) => ({
        operator: c,
        seconds: network.collective(c.kind, c.axis, c.bytes),
        counts: [countIn(parts[0]!, c), countIn(parts[1]!, c), countIn(parts[2]!, c)],
      })),
    sharding: parts[1]!.collectives
      .filter((c) => c.axis === "dp" && c.pass !== "update")
      .map(({ kind, pass: of, count, bytes }) => ({
        kind,
        pass: of,
        count,
        bytesPerParameter: bytes / parameters,
      })),
    update: updatePrice(parts[1]!.operators, p.precision, pricer, updates),
  };
}

function passPrices(
  pass: MicrobatchPass,
  parts: readonly StageOperators[],
  pricer: Pricer,
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
    seconds[i] = pricer.operator(o);
    dispatch[i] = pricer.dispatch?.(o) ?? 0;
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
  return part.collectives.find((x) => same(x, c))?.count ?? 0;
}

function same(a: CollectiveOperator, b: CollectiveOperator): boolean {
  return a.kind === b.kind && a.axis === b.axis && a.pass === b.pass && a.bytes === b.bytes;
}

/** The update kernels of a layer, stretched to any number of parameters; each number is priced once. */
function updatePrice(
  operators: readonly Operator[],
  precision: Plan["precision"],
  pricer: Pricer,
  updates: UpdateTimes,
): UpdatePrice {
  const kernels = operators.filter((o) => o.pass === "update");
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
