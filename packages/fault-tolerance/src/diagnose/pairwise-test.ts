/**
 * Acme's two-round test (NSDI'24, section 5.3): an all-gather in worlds of two hosts. Worlds that fail
 * give suspects; each suspect is tested again with a host of a world that passed. Two tests find any
 * number of bad hosts, so long as one world of the first round is clean.
 */
import { TriremeError } from "@trireme/core";

/** Hosts that run a collective together. */
export type World = readonly number[];

export type PairwiseStep =
  /** Run the worlds of each batch at once, the batches one after the other, and call again. */
  | {
      readonly kind: "test";
      readonly round: 1 | 2;
      readonly batches: readonly (readonly World[])[];
    }
  | {
      readonly kind: "done";
      /** Hosts to cordon, ascending. */
      readonly bad: readonly number[];
      /** Suspects for whom no host is left that is known to be good. */
      readonly undecided: readonly number[];
    };

/** Worlds that failed, of each round that has been run. */
export interface PairwiseResults {
  readonly first?: readonly World[];
  readonly second?: readonly World[];
}

/**
 * What to do next. Worlds are pairs; the last of an odd number is of three. One host alone cannot be
 * tested so and is undecided.
 * @throws TriremeError "PAIRWISE" on a host given twice, or results of a world that was not tested.
 */
export function pairwiseStep(hosts: readonly number[], results: PairwiseResults): PairwiseStep {
  if (new Set(hosts).size !== hosts.length) {
    throw new TriremeError("PAIRWISE", `hosts [${hosts.join(", ")}] name a host twice`);
  }
  if (hosts.length < 2) return { kind: "done", bad: [], undecided: hosts };
  const worlds = firstWorlds(hosts);
  if (results.first === undefined) return { kind: "test", round: 1, batches: [worlds] };
  const suspects = membersOf(results.first, worlds);
  const good = hosts.filter((host) => !suspects.has(host));
  if (suspects.size === 0) return { kind: "done", bad: [], undecided: [] };
  if (good.length === 0) return { kind: "done", bad: [], undecided: ascending(suspects) };
  const batches = secondBatches([...suspects], good);
  if (results.second === undefined) return { kind: "test", round: 2, batches };
  const failed = membersOf(results.second, batches.flat());
  return {
    kind: "done",
    bad: ascending([...suspects].filter((h) => failed.has(h))),
    undecided: [],
  };
}

function firstWorlds(hosts: readonly number[]): World[] {
  const worlds: World[] = [];
  for (let i = 0; i + 1 < hosts.length; i += 2) {
    const last = i + 3 === hosts.length;
    worlds.push(hosts.slice(i, last ? i + 3 : i + 2));
    if (last) break;
  }
  return worlds;
}

/** Each suspect with a good host; a good host serves once in a batch. */
function secondBatches(suspects: readonly number[], good: readonly number[]): World[][] {
  const batches: World[][] = [];
  for (let from = 0; from < suspects.length; from += good.length) {
    batches.push(suspects.slice(from, from + good.length).map((host, i) => [host, good[i]!]));
  }
  return batches;
}

function membersOf(failed: readonly World[], tested: readonly World[]): Set<number> {
  const known = new Set(tested.map((world) => world.join()));
  for (const world of failed) {
    if (known.has(world.join())) continue;
    throw new TriremeError("PAIRWISE", `world [${world.join(", ")}] was not asked for`);
  }
  return new Set(failed.flat());
}

function ascending(hosts: Iterable<number>): number[] {
  return [...hosts].toSorted((a, b) => a - b);
}
