/** All algorithms by operation and name. */
import { TriremeError, nearestName } from "@trireme/core";
import { binomialBroadcast, binomialGather, binomialReduce, binomialScatter } from "./binomial.ts";
import { bruckAllGather, bruckAllToAll } from "./bruck.ts";
import {
  directAllGather,
  directAllToAll,
  directReduceScatter,
  oneShotAllReduce,
  twoShotAllReduce,
} from "./direct.ts";
import { disseminationBarrier } from "./dissemination.ts";
import { treeAllReduce } from "./double-binary-tree.ts";
import { railAlignedAllToAll, twoDimensionalAllToAll } from "./hierarchical-all-to-all.ts";
import { bcubeAllReduce, hierarchicalAllReduce } from "./hierarchical.ts";
import { nvlsAllReduce, sharpAllReduce } from "./in-network.ts";
import { pairwiseAllToAll, pairwiseReduceScatter } from "./pairwise.ts";
import { patAllGather, patReduceScatter } from "./pat.ts";
import type { CollectivePlan, PlanOperation } from "./plan.ts";
import { rabenseifnerAllReduce, recursiveHalvingReduceScatter } from "./rabenseifner.ts";
import { recursiveDoublingAllGather, recursiveDoublingAllReduce } from "./recursive-doubling.ts";
import { chainBroadcast, ringAllGather, ringAllReduce, ringReduceScatter } from "./ring.ts";

/** Options of `createPlan`; each algorithm looks at those it knows. */
export interface CreatePlanOptions {
  readonly operation: PlanOperation;
  readonly algorithm: string;
  readonly ranks: number;
  /** Root of a rooted operation; default 0. */
  readonly root?: number;
  /** Ranks of a host, for the two-level algorithms; must divide `ranks`. */
  readonly perHost?: number;
  /** Base of bcube; default 2. */
  readonly base?: number;
}

type Build = (options: CreatePlanOptions) => CollectivePlan;

const grid = ({ ranks, perHost = 1 }: CreatePlanOptions): { hosts: number; perHost: number } => ({
  hosts: ranks / perHost,
  perHost,
});

/** Algorithms of each operation. */
export const planAlgorithms: Readonly<Record<PlanOperation, Readonly<Record<string, Build>>>> = {
  "all-reduce": {
    ring: (o) => ringAllReduce(o.ranks),
    tree: (o) => treeAllReduce(o.ranks),
    "recursive-doubling": (o) => recursiveDoublingAllReduce(o.ranks),
    rabenseifner: (o) => rabenseifnerAllReduce(o.ranks),
    "one-shot": (o) => oneShotAllReduce(o.ranks),
    "two-shot": (o) => twoShotAllReduce(o.ranks),
    hierarchical: (o) => hierarchicalAllReduce(grid(o)),
    bcube: (o) => bcubeAllReduce(o.ranks, o.base ?? 2),
    nvls: (o) => nvlsAllReduce(o.ranks),
    sharp: (o) => sharpAllReduce(o.ranks),
  },
  "reduce-scatter": {
    ring: (o) => ringReduceScatter(o.ranks),
    pairwise: (o) => pairwiseReduceScatter(o.ranks),
    direct: (o) => directReduceScatter(o.ranks),
    "recursive-halving": (o) => recursiveHalvingReduceScatter(o.ranks),
    pat: (o) => patReduceScatter(o.ranks),
  },
  "all-gather": {
    ring: (o) => ringAllGather(o.ranks),
    direct: (o) => directAllGather(o.ranks),
    bruck: (o) => bruckAllGather(o.ranks),
    "recursive-doubling": (o) => recursiveDoublingAllGather(o.ranks),
    pat: (o) => patAllGather(o.ranks),
  },
  broadcast: {
    binomial: (o) => binomialBroadcast(o.ranks, o.root),
    ring: (o) => chainBroadcast(o.ranks, o.root ?? 0),
  },
  reduce: { binomial: (o) => binomialReduce(o.ranks, o.root) },
  scatter: { binomial: (o) => binomialScatter(o.ranks, o.root) },
  gather: { binomial: (o) => binomialGather(o.ranks, o.root) },
  "all-to-all": {
    pairwise: (o) => pairwiseAllToAll(o.ranks),
    direct: (o) => directAllToAll(o.ranks),
    bruck: (o) => bruckAllToAll(o.ranks),
    "2d": (o) => twoDimensionalAllToAll(grid(o)),
    "rail-aligned": (o) => railAlignedAllToAll(grid(o)),
  },
  barrier: { dissemination: (o) => disseminationBarrier(o.ranks) },
};

/**
 * The plan of an algorithm by name. Throws `OPERATION` and `ALGORITHM` with the nearest name when
 * there is no such operation or it has no such algorithm, and what the algorithm throws for counts it cannot serve.
 */
export function createPlan(options: CreatePlanOptions): CollectivePlan {
  const operations = Object.keys(planAlgorithms);
  if (!operations.includes(options.operation)) {
    const near = nearestName(options.operation, operations);
    throw new TriremeError(
      "OPERATION",
      `no operation "${options.operation}"; ${near === undefined ? `known are ${operations.join(", ")}` : `did you mean "${near}"?`}`,
    );
  }
  const known = planAlgorithms[options.operation];
  const build = Object.hasOwn(known, options.algorithm) ? known[options.algorithm] : undefined;
  if (build !== undefined) return build(options);
  const nearest = nearestName(options.algorithm, Object.keys(known));
  throw new TriremeError(
    "ALGORITHM",
    `no ${options.operation} algorithm "${options.algorithm}"; ${nearest === undefined ? `known are ${Object.keys(known).join(", ")}` : `did you mean "${nearest}"?`}`,
  );
}
