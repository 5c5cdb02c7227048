/** What a host's loader is started with, and the checks of it. */
import { type Seconds, TriremeError } from "@trireme/core";
import { frameBound } from "../../construct/batch-frame.ts";
import type { ConstructOptions } from "../../construct/microbatch.ts";
import type { Planner } from "../../planning/planner.ts";
import type { AutoScalerOptions } from "../../scaling/auto-scaler.ts";
import { type ActorKind, actorKinds } from "./actor.ts";
import type { SourceSpec } from "./open-source.ts";

/** A loader for the ranks of one host. */
export interface HostLoaderOptions {
  /** Decides every step. On each host of a run the same, so that all decide alike. */
  readonly planner: Planner;
  /** The sources of the planner's program, by the same names in the same order. */
  readonly sources: readonly SourceSpec[];
  /** Chooses the order within each source. */
  readonly seed: number;
  readonly construct: ConstructOptions;
  /** Ranks on this host. Default: all of the planner's tree. */
  readonly ranks?: readonly number[];
  /**
   * Where source loaders and data constructors run. Ranks may be anywhere in this process, with
   * "process" in any process of this host. Default "thread".
   */
  readonly actors?: ActorKind;
  /** Threads or processes that share the sources. Default 1. */
  readonly sourceHosts?: number;
  /** Those of them that have a hot standby. Default none. */
  readonly shadows?: readonly number[];
  /** Steps made ahead of the slowest rank. Default 2. */
  readonly prefetch?: number;
  /** Steps before the loader ends. Default: it goes on. */
  readonly steps?: number;
  /** A stored `MultiSourceState` to go on from. */
  readonly state?: unknown;
  /** Steps between snapshots of sources that can only be read on. Default 100. */
  readonly snapshotEvery?: number;
  /** Adds and releases loaders as weights move; looks `lead` steps ahead in the schedule. */
  readonly scaling?: AutoScalerOptions & { readonly lead?: number };
  /** Bytes of a slot of shared memory; needed where rows are not bounded by samples. */
  readonly slotBytes?: number;
  /** Time for an actor to answer before it is replaced. Default 60. */
  readonly deadline?: Seconds;
  /** Time for a rank to take a step before the loader gives up. Default 3600. */
  readonly rankDeadline?: Seconds;
  /** Failures in a row of one request after which the loader gives up. Default 3. */
  readonly attempts?: number;
}

/** Options with every default. */
export type CheckedHostOptions = Required<
  Omit<HostLoaderOptions, "state" | "scaling" | "slotBytes">
> &
  Pick<HostLoaderOptions, "state" | "scaling"> & { readonly slotWords: number };

/** Fills defaults in and checks. @throws TriremeError "HOST_LOADER" */
export function checkHostOptions(options: HostLoaderOptions): CheckedHostOptions {
  const { tree, sources, globalBatch, microbatches, equalCounts } = options.planner.spec;
  const checked = {
    ranks: tree.places.map(({ rank }) => rank),
    actors: "thread" as const,
    sourceHosts: 1,
    shadows: [],
    prefetch: 2,
    steps: Infinity,
    snapshotEvery: 100,
    deadline: 60,
    rankDeadline: 3600,
    attempts: 3,
    ...options,
  };
  const fail = (reason: string): never => {
    throw new TriremeError("HOST_LOADER", reason);
  };
  for (const name of ["sourceHosts", "prefetch", "snapshotEvery", "attempts"] as const) {
    const value = checked[name];
    if (!Number.isInteger(value) || value < 1) fail(`${name} ${value} is not a positive integer`);
  }
  for (const name of ["deadline", "rankDeadline"] as const) {
    if (!(checked[name] > 0)) fail(`${name} ${checked[name]} s is not positive`);
  }
  const { steps, seed, actors, slotBytes, scaling } = checked;
  if (!(steps === Infinity || (Number.isSafeInteger(steps) && steps >= 0)))
    fail(`steps ${steps} is not a count`);
  if (!Number.isSafeInteger(seed)) fail(`seed ${seed} is not a safe integer; use one like 0`);
  if (!actorKinds.includes(actors))
    fail(`actors ${JSON.stringify(actors)}; use ${actorKinds.join(", ")}`);
  if (slotBytes !== undefined && !(slotBytes >= 4 && slotBytes < Infinity))
    fail(`slotBytes ${slotBytes} hold nothing; use a finite number of at least 4`);
  const lead = scaling?.lead ?? 0;
  if (!Number.isInteger(lead) || lead < 0) fail(`scaling.lead ${lead} is not a count of steps`);
  if (checked.ranks.length === 0)
    fail("no ranks: a host without any needs no loader; leave ranks out for all");
  const names = checked.sources.map(({ name }) => name);
  if (names.join("\n") !== sources.join("\n")) {
    fail(
      `sources ${names.join(", ")} are not those of the program: ${sources.join(", ")}, in that order`,
    );
  }
  const strangers = checked.ranks.filter((rank) => tree.places[rank] === undefined);
  if (strangers.length > 0) fail(`rank ${strangers.join(", ")} is outside 0..${tree.ranks - 1}`);
  const beyond = checked.shadows.find(
    (host) => !(Number.isInteger(host) && host >= 0 && host < checked.sourceHosts),
  );
  if (beyond !== undefined)
    fail(`a shadow for source host ${beyond}; there are ${checked.sourceHosts}, from 0 on`);

  const { sequence, method, long = "truncate" } = checked.construct;
  if (!Number.isInteger(sequence) || sequence < 1)
    fail(`sequence ${sequence} is not a positive integer`);
  if (tree.slices > 1 && sequence % (2 * tree.slices) !== 0) {
    const multiple = 2 * tree.slices;
    fail(
      `a sequence of ${sequence} tokens does not divide into 2 x slices(${tree.slices}) = ${multiple} chunks; the nearest is ${Math.max(1, Math.round(sequence / multiple)) * multiple}`,
    );
  }
  const bounded = method !== "concatenate" && long !== "split";
  if (!bounded && options.slotBytes === undefined) {
    fail(
      `rows of "${method}" with long documents ${method === "concatenate" ? "cut" : "split"} are not bounded by the samples; give slotBytes, such as ${4 * frameBound(globalBatch, sequence, microbatches)}`,
    );
  }
  const samples = equalCounts ? globalBatch / tree.shares : globalBatch;
  const slotWords =
    options.slotBytes === undefined
      ? frameBound(samples, Math.ceil(sequence / tree.slices), microbatches)
      : Math.floor(options.slotBytes / 4);
  return { ...checked, slotWords };
}
