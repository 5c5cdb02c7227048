import { createRng } from "@trireme/core";
import {
  type PackingMethod,
  balanceKarmarkarKarp,
  pack,
  packingFill,
  sequenceCost,
} from "@trireme/dataloader";

// A million documents of the lengths web text has: log-normal, median 400 tokens, a long tail.
const rng = createRng(11);
const capacity = 4096;
const lengths = Uint32Array.from({ length: 1e6 }, () =>
  Math.ceil(400 * Math.exp(1.2 * rng.normal())),
);

const packing = (method: PackingMethod) => [
  {
    id: `dataloader/pack-${method}`,
    what: `a million documents of log-normal lengths into rows of ${capacity} tokens, ${method}`,
    unit: "s",
    better: "lower",
    target: 3,
    time: (): void => {
      pack({ lengths, capacity, method });
    },
  },
  {
    id: `dataloader/fill-${method}`,
    what: `tokens that are not padding in rows of ${capacity}, a million documents packed by ${method}`,
    unit: "fraction",
    better: "higher",
    target: null,
    measure: (): number => packingFill(pack({ lengths, capacity, method })),
  },
];

/**
 * What balancing does for the slowest of 16 ranks with 32 sequences each: its work where sequences are
 * dealt in order over its work where they are balanced, the mean of 20 steps. One corpus, log-normal
 * with a median of 300 tokens, cut at the context. Work is that of a model of hidden size 5120, where
 * causal attention costs as much as the matrix multiplications at 6 · 5120 tokens.
 */
function speedup(context: number): number {
  const steps = 20;
  let sum = 0;
  for (let step = 0; step < steps; step++) {
    const random = createRng(context + step);
    const costs = Float64Array.from({ length: 16 * 32 }, () => {
      const length = Math.min(context, Math.ceil(300 * Math.exp(1.5 * random.normal())));
      return sequenceCost({ linear: 1, quadratic: 1 / (6 * 5120) }, [length]);
    });
    const inOrder = Array.from({ length: 16 }, (_, rank) =>
      costs.subarray(32 * rank, 32 * (rank + 1)).reduce((a, b) => a + b),
    );
    sum += Math.max(...inOrder) / Math.max(...balanceKarmarkarKarp({ costs, groups: 16 }).loads);
  }
  return sum / steps;
}

const published = [
  { context: 4096, value: 1.71 },
  { context: 8192, value: 2.63 },
  { context: 16_384, value: 3.09 },
];

const balancing = published.map(({ context, value }) => ({
  id: `dataloader/balance-${context / 1024}k`,
  what: `work of the slowest of 16 ranks dealt in order over that of Karmarkar-Karp, skewed sequences of up to ${context} tokens`,
  unit: "ratio",
  better: "higher",
  target: null,
  measure: (): number => speedup(context),
  peer: {
    name: "OVERLORD, iterations with images",
    value,
    source: "arXiv:2504.09844, gain of orchestration by context",
  },
}));

export const benchmarks = [
  ...(["concatenate", "first-fit", "best-fit"] as const).flatMap(packing),
  ...balancing,
];
