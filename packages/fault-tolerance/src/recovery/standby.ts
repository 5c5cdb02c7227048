/** How many warm standbys to hold: ByteRobust (SOSP'25, section 6.2): the P99 of a binomial. */
import { TriremeError } from "@trireme/core";

export interface StandbyOptions {
  /** Machines (hosts) of the job. */
  readonly hosts: number;
  /** Probability that one host fails within the time a standby takes to be replaced (a day). */
  readonly probability: number;
  /** Quantile the pool covers; 0.99 by default. */
  readonly quantile?: number;
}

/**
 * The least pool size k with P(Binomial(hosts, probability) ≤ k) ≥ quantile.
 * Summed in logarithms, so that 10^6 hosts do not underflow.
 */
export function standbyPool(options: StandbyOptions): number {
  const { hosts, probability, quantile = 0.99 } = options;
  if (!Number.isSafeInteger(hosts) || hosts < 0) {
    throw new TriremeError(
      "STANDBY",
      `hosts = ${hosts} is not a whole number of hosts; use 0 or more`,
    );
  }
  if (!(probability >= 0 && probability <= 1)) {
    throw new TriremeError("STANDBY", `probability = ${probability} is not in [0, 1]`);
  }
  if (!(quantile > 0 && quantile < 1)) {
    throw new TriremeError("STANDBY", `quantile = ${quantile} is not in (0, 1); 0.99 is usual`);
  }
  if (probability === 0) return 0;
  if (probability === 1) return hosts;
  const odds = Math.log(probability) - Math.log1p(-probability);
  let logTerm = hosts * Math.log1p(-probability);
  let below = 0;
  for (let k = 0; k < hosts; k++) {
    below += Math.exp(logTerm);
    if (below >= quantile) return k;
    logTerm += Math.log(hosts - k) - Math.log(k + 1) + odds;
  }
  return hosts;
}
