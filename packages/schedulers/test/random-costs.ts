/** Seeded cost settings for the searches. */
import { createRng } from "@trireme/core";
import type { AutomaticOptions } from "@trireme/schedulers";

/**
 * A random setting of P ≤ 3 and M ≤ 4: costs from 0.5 to 2, equal over stages or not, with or without
 * transfers, memory for 1 to 2P microbatches on each rank.
 */
export function randomSetting(seed: number): AutomaticOptions {
  const rng = createRng(seed);
  const ranks = 1 + rng.integer(3);
  const microbatches = 1 + rng.integer(4);
  const column = (): number[] => {
    const costs = Array.from({ length: ranks }, () => 0.5 + 1.5 * rng.float());
    return rng.float() < 0.5 ? costs.map(() => costs[0]!) : costs;
  };
  const [forward, inputGradient, weightGradient] = [column(), column(), column()];
  const pointToPoint = rng.float() < 0.5 ? 0 : 0.5 * rng.float();
  return {
    ranks,
    microbatches,
    costs: {
      forward: (s) => forward[s]!,
      inputGradient: (s) => inputGradient[s]!,
      weightGradient: (s) => weightGradient[s]!,
      pointToPoint,
    },
    memoryLimit: 1 + rng.integer(2 * ranks),
  };
}
