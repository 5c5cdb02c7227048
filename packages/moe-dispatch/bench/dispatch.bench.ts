import { createRng, hash32 } from "@trireme/core";
import {
  type RouterOptions,
  balanceExperts,
  loadStatistics,
  planDispatch,
  planUnique,
  rankLoads,
  route,
  routingTrace,
} from "@trireme/moe-dispatch";
import reference from "../test/vectors/eplb.json" with { type: "json" };

const [tokens, experts, topK, ranks] = [1_000_000, 256, 8, 64];

/** Logits are read from a window of 64 MB, past every cache, again and again: a million tokens' would be 1 GB. */
const window = 62_500;
let logits = new Float32Array(0);
let bias = new Float64Array(0);
let expertIds: Int32Array = new Int32Array(0);

function prepare(): void {
  if (logits.length > 0) return;
  const rng = createRng(1);
  logits = Float32Array.from({ length: window * experts }, () => rng.normal());
  bias = Float64Array.from({ length: experts }, () => 0.01 * rng.normal());
  expertIds = routingTrace({ experts, topK, tokens, seed: 2, zipf: 0.3, correlation: 0.3 }).choices(
    0,
  );
}

function routeMillion(o: Omit<RouterOptions, "experts" | "topK">): void {
  for (let done = 0; done < tokens; done += window) route(logits, { experts, topK, ...o });
}

const timed = new Map<() => void, number>();

/** CPU seconds of one run after a short warm-up; one run serves both of a router's figures. */
function secondsOf(run: () => void): number {
  prepare();
  const known = timed.get(run);
  if (known !== undefined) return known;
  route(logits.subarray(0, experts * 1000), { experts, topK, scoring: "sigmoid", bias });
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  const seconds = (user + system) / 1e6;
  timed.set(run, seconds);
  return seconds;
}

const routers = [
  [
    "softmax-after",
    "top-8 of the logits, then softmax over the eight",
    2.5,
    (): void => routeMillion({ scoring: "softmax-after" }),
  ],
  [
    "softmax-before",
    "softmax over all 256, then top-8",
    7,
    (): void => routeMillion({ scoring: "softmax-before" }),
  ],
  [
    "sigmoid",
    "sigmoid of all 256, plus a selection bias, then top-8",
    7,
    (): void => routeMillion({ scoring: "sigmoid", bias }),
  ],
  [
    "sigmoid-groups",
    "the same, limited to 4 of 8 groups by their best two",
    null,
    (): void => routeMillion({ scoring: "sigmoid", bias, groups: { groups: 8, keep: 4, best: 2 } }),
  ],
] as const;

/** The first case of the reference's results: 61 layers x 256 experts to 288 replicas on 36 GPUs. */
const balance = reference.cases[0]!;
const loads = Float64Array.from({ length: 61 * 256 }, (_, i) => {
  const e = i % 256;
  return Math.floor((hash32(balance.seed, Math.floor(i / 256), e) % 1000) ** 3 / 1e5) * 512 + e;
});

export const benchmarks = [
  {
    id: "moe-dispatch/plan",
    what: "seconds to plan the dispatch of 10^6 tokens x top-8 of 256 experts on 64 ranks: permutation, counts, splits, inverse",
    unit: "s",
    better: "lower",
    target: 0.5,
    before: prepare,
    time: (): void => void planDispatch({ expertIds, topK, experts, ranks }),
  },
  {
    id: "moe-dispatch/plan-unique",
    what: "seconds to plan the same with each token once per rank, by hosts of 8 ranks",
    unit: "s",
    better: "lower",
    target: null,
    before: prepare,
    time: (): void => void planUnique({ expertIds, topK, experts, ranks, ranksPerHost: 8 }),
  },
  ...routers.map(([id, what, target, run]) => ({
    id: `moe-dispatch/route-${id}`,
    what: `seconds to route 10^6 tokens by ${what}`,
    unit: "s",
    better: "lower" as const,
    target,
    measure: (): number => secondsOf(run),
  })),
  ...routers.map(([id, what, target, run]) => ({
    id: `moe-dispatch/logit-${id}`,
    what: `nanoseconds per logit to route by ${what}`,
    unit: "ns",
    better: "lower" as const,
    target: target === null ? null : (target / (tokens * experts)) * 1e9,
    measure: (): number => (secondsOf(run) / (tokens * experts)) * 1e9,
  })),
  {
    id: "moe-dispatch/balance",
    what: "seconds to place 61 layers x 256 experts as 288 replicas on 36 GPUs",
    unit: "s",
    better: "lower",
    target: 1,
    time: (): void => void balanceExperts({ ...balance, loads }),
  },
  {
    id: "moe-dispatch/balance-excess",
    what: "mean over the layers of the heaviest GPU's load over the reference's, less 1 (0 or below: no worse)",
    unit: "fraction",
    better: "lower",
    target: 0,
    measure: (): number => {
      const perRank = rankLoads(balanceExperts({ ...balance, loads }), loads);
      const excess = balance.imbalance.map((theirs, layer) => {
        const ours = loadStatistics(perRank.subarray(layer * 36, (layer + 1) * 36)).imbalance;
        return ours / theirs - 1;
      });
      return excess.reduce((sum, x) => sum + x, 0) / excess.length;
    },
  },
  {
    id: "moe-dispatch/trace",
    what: "seconds to draw the choices of 10^6 tokens x top-8 of 256 experts for a simulation",
    unit: "s",
    better: "lower",
    target: null,
    time: (): void =>
      void routingTrace({
        experts,
        topK,
        tokens,
        seed: 3,
        zipf: 0.5,
        drift: 0.3,
        correlation: 0.3,
      }).choices(7),
  },
] as const;
