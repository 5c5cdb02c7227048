/** What uneven routing costs: the busiest rank of an expert-parallel group sets the pace of the others. */
import { type Seconds, TriremeError } from "@trireme/core";
import type { Operator } from "@trireme/workload";
import type { Pricer } from "./pricer.ts";

/**
 * Tokens of the busiest rank over the mean, from the tokens that each expert got (measured, or `loads` of a dispatch
 * plan), experts dealt out in order over `ep` ranks. 1 is even.
 * Throws TriremeError "EXPERTS" when ep does not divide the experts, or a count is negative or no token was routed.
 */
export function expertLoad(tokens: ArrayLike<number>, ep: number): number {
  const held = tokens.length / ep;
  if (!Number.isInteger(ep) || ep < 1 || !Number.isInteger(held) || held < 1) {
    fail(`${tokens.length} experts cannot be shared out evenly over ep ${ep}`);
  }
  let [busiest, all] = [0, 0];
  for (let rank = 0; rank < ep; rank++) {
    let own = 0;
    for (let i = rank * held; i < (rank + 1) * held; i++) {
      if (!(tokens[i]! >= 0 && tokens[i]! < Infinity)) fail(`expert ${i} has ${tokens[i]} tokens`);
      own += tokens[i]!;
    }
    busiest = Math.max(busiest, own);
    all += own;
  }
  if (all === 0) fail("no token was routed");
  return (busiest * ep) / all;
}

/**
 * Prices the kernels of routed tokens as the busiest rank runs them; throws TriremeError "EXPERTS" for a load below 1.
 */
export function loadedPricer(pricer: Pricer, load: number): Pricer {
  if (!(load >= 1 && load < Infinity)) {
    fail(`expertLoad ${load} is the busiest rank over the mean; use 1 or more`);
  }
  if (load === 1) return pricer;
  return {
    ...pricer,
    operator(op: Operator): Seconds {
      const seconds = pricer.operator(op);
      return op.kind === "grouped-gemm" || op.kind === "permutation" ? load * seconds : seconds;
    },
  };
}

function fail(message: string): never {
  throw new TriremeError("EXPERTS", message);
}
