/**
 * MegaScale's self-check ladder (NSDI'24, section 4.3): after a fault all hosts test themselves from
 * the inside out, and only what passed goes on to the next test, so that a bad NIC is not seen again
 * as a bad neighbour. Hosts that fail are blocked and replaced.
 */
import { TriremeError } from "@trireme/core";
import { type PairwiseResults, type World, pairwiseStep } from "./pairwise-test.ts";

export type SelfCheck =
  /** Loopback from every RDMA NIC to every memory and GPU of the host, full mesh. */
  | "loopback"
  /** Between the RDMA NICs of a host. */
  | "nic-to-nic"
  /** NCCL all-to-all of the host's GPUs. */
  | "intra-host-all-to-all"
  /** NCCL all-reduce with neighbours under the same ToR switch. */
  | "neighbour-all-reduce";

/** In order; the last tests hosts together and the others alone. */
export const selfChecks: readonly SelfCheck[] = [
  "loopback",
  "nic-to-nic",
  "intra-host-all-to-all",
  "neighbour-all-reduce",
];

/** Results so far. A check alone gives the hosts that failed it; neighbours, the worlds that did. */
export interface SelfCheckResults {
  readonly alone: readonly (readonly number[])[];
  readonly neighbours?: readonly PairwiseResults[];
}

export type SelfCheckStep =
  | { readonly kind: "run"; readonly check: SelfCheck; readonly hosts: readonly number[] }
  /** Worlds of one ToR set each: batches one after the other, sets side by side. */
  | {
      readonly kind: "run-worlds";
      readonly check: "neighbour-all-reduce";
      readonly sets: readonly (readonly (readonly World[])[])[];
    }
  | {
      readonly kind: "done";
      readonly block: readonly number[];
      /** Hosts that could not be tested with a neighbour: alone in their set, or all of it failed. */
      readonly undecided: readonly number[];
    };

/**
 * The next test of the ladder.
 * @param sets Hosts under each ToR switch, disjoint.
 * @param results Failures of the checks run so far, in the ladder's order; for the neighbours one
 * entry per set, in order, that gains `first` and then `second` (left out where no test was asked).
 * @throws TriremeError "SELF_CHECK" when results name hosts that were not tested.
 */
export function selfCheckStep(
  sets: readonly (readonly number[])[],
  results: SelfCheckResults,
): SelfCheckStep {
  const failed = new Set<number>();
  const all = sets.flat();
  for (const [i, hosts] of results.alone.entries()) {
    for (const host of hosts) {
      if (!all.includes(host) || failed.has(host)) {
        throw new TriremeError("SELF_CHECK", `host ${host} was not in the check ${selfChecks[i]}`);
      }
    }
    for (const host of hosts) failed.add(host);
  }
  const passed = (hosts: readonly number[]): number[] => hosts.filter((host) => !failed.has(host));
  const check = selfChecks[results.alone.length];
  if (check === undefined) {
    throw new TriremeError(
      "SELF_CHECK",
      `${results.alone.length} results of checks alone; there are ${selfChecks.length - 1}`,
    );
  }
  if (check !== "neighbour-all-reduce") return { kind: "run", check, hosts: passed(all) };
  const steps = sets.map((set, i) => pairwiseStep(passed(set), results.neighbours?.[i] ?? {}));
  if (steps.some((step) => step.kind === "test")) {
    const batches = steps.map((step) => (step.kind === "test" ? step.batches : []));
    return { kind: "run-worlds", check, sets: batches };
  }
  const done = steps.filter((step) => step.kind === "done");
  const ascending = (hosts: number[]): number[] => hosts.toSorted((a, b) => a - b);
  return {
    kind: "done",
    block: ascending([...failed, ...done.flatMap((step) => step.bad)]),
    undecided: ascending(done.flatMap((step) => step.undecided)),
  };
}
