/** All algorithms with all the shapes that a rank count allows. */
import { type CreatePlanOptions, type PlanOperation, planAlgorithms } from "@trireme/collectives";

const powers = (base: number): number[] => [0, 1, 2, 3, 4, 5].map((k) => base ** k);

/** Whether an algorithm serves this count at all. */
function serves(algorithm: string, ranks: number): boolean {
  return !/^recursive-(halving|doubling)/.test(algorithm) || powers(2).includes(ranks);
}

export function variants(ranks: number): CreatePlanOptions[] {
  const all: CreatePlanOptions[] = [];
  for (const operation of Object.keys(planAlgorithms) as PlanOperation[]) {
    for (const algorithm of Object.keys(planAlgorithms[operation])) {
      const options = { operation, algorithm, ranks };
      if (algorithm === "bcube") {
        for (const base of [2, 3, 4]) {
          if (powers(base).includes(ranks)) all.push({ ...options, base });
        }
      } else if (["hierarchical", "2d", "rail-aligned"].includes(algorithm)) {
        for (let perHost = 1; perHost <= ranks; perHost++) {
          if (ranks % perHost === 0) all.push({ ...options, perHost });
        }
      } else if (["broadcast", "reduce", "scatter", "gather"].includes(operation)) {
        for (const root of new Set([0, ranks - 1, Math.floor(ranks / 2)])) {
          all.push({ ...options, root });
        }
      } else if (operation === "all-reduce" || serves(algorithm, ranks)) {
        all.push(options);
      }
    }
  }
  return all;
}
