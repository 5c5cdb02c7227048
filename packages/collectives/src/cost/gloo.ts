/**
 * Gloo on CPUs and TCP: its all-reduce algorithms as closed forms (gloo `allreduce_ring.h`,
 * `_ring_chunked.h`, `_halving_doubling.h`, `_bcube.h`; BSD). The plain ring sends whole buffers, the
 * chunked one 2 P chunks in two passes, halving-doubling splits counts that are no power of two in
 * binary blocks.
 */
import { type Bytes, GBps, type Seconds, TriremeError, nearestName, us } from "@trireme/core";
import { checkRanks } from "../plan/plan.ts";
import type { Cost } from "./closed-form.ts";

/** Link and adder of a Gloo context. */
export interface GlooProfile {
  readonly alpha: Seconds;
  readonly beta: number;
  readonly gamma: number;
}

/** TCP between processes of one host or over 10 to 25 GbE, one core adding. Estimates, not measured. */
export const glooProfile: GlooProfile = { alpha: us(30), beta: 1 / GBps(2.5), gamma: 1 / GBps(5) };

const glooAlgorithms = ["ring", "ring-chunked", "halving-doubling", "bcube"] as const;
export type GlooAlgorithm = (typeof glooAlgorithms)[number];

/**
 * Steps, bytes sent and bytes added per rank of Gloo's all-reduce. Throws `ALGORITHM`, `RANKS`,
 * `BYTES` or `BASE` on what there is not.
 */
export function glooCost(algorithm: GlooAlgorithm, ranks: number, bytes: Bytes, base = 2): Cost {
  if (!glooAlgorithms.includes(algorithm)) {
    const nearest = nearestName(algorithm, glooAlgorithms);
    throw new TriremeError(
      "ALGORITHM",
      `no Gloo algorithm "${algorithm as string}"; ${nearest === undefined ? `known are ${glooAlgorithms.join(", ")}` : `did you mean "${nearest}"?`}`,
    );
  }
  checkRanks(ranks);
  if (!(bytes >= 0 && bytes < Infinity)) {
    throw new TriremeError("BYTES", `bytes ${bytes} must be a number of at least 0`);
  }
  if (!(Number.isSafeInteger(base) && base >= 2)) {
    throw new TriremeError("BASE", `base ${base} must be a whole number of at least 2`);
  }
  if (ranks === 1) return { steps: 0, sent: 0, added: 0 };
  switch (algorithm) {
    case "ring":
      return { steps: ranks - 1, sent: (ranks - 1) * bytes, added: (ranks - 1) * bytes };
    case "ring-chunked":
      return { steps: 4 * ranks, sent: 2 * bytes, added: bytes };
    case "halving-doubling": {
      const rounds = Math.ceil(Math.log2(ranks));
      return { steps: 2 * rounds, sent: 2 * bytes, added: bytes };
    }
    case "bcube": {
      const rounds = Math.ceil(Math.log(ranks) / Math.log(base) - 1e-9);
      return { steps: 2 * rounds * (base - 1), sent: 2 * bytes, added: bytes };
    }
  }
}

/** Seconds of Gloo's all-reduce; without an algorithm the cheapest. */
export function glooAllReduceTime(
  ranks: number,
  bytes: Bytes,
  options: { readonly algorithm?: GlooAlgorithm; readonly profile?: GlooProfile } = {},
): Seconds {
  const { algorithm, profile = glooProfile } = options;
  const price = (name: GlooAlgorithm): Seconds => {
    const { steps, sent, added } = glooCost(name, ranks, bytes);
    return steps * profile.alpha + sent * profile.beta + added * profile.gamma;
  };
  return algorithm === undefined ? Math.min(...glooAlgorithms.map(price)) : price(algorithm);
}
