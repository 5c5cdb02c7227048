/**
 * A data pipeline declared by OVERLORD's primitives (arXiv:2504.09844, `mix`, `distribute`, `cost`,
 * `balance`, `broadcast_at`, `plan`): what comes from where, over which axis it is dealt, what it
 * costs, how it is evened out, who passes it on. A program is data; `plan` checks it and gives the
 * planner that decides every step by it.
 */
import { TriremeError } from "@trireme/core";
import type { BalanceMethod } from "../distribution.ts";
import type { PlaceTree } from "../place-tree.ts";
import type { BalanceLevel, LoadProgramSpec } from "./load-program-spec.ts";
import type { MixOptions } from "./mixer.ts";
import { type Planner, createPlanner } from "./planner.ts";
import { type SampleCosts, type SampleMetadata, textCosts } from "./sample-costs.ts";

/** A program under construction. Each primitive gives a new program and leaves this one as it is. */
export interface LoadProgram {
  readonly spec: LoadProgramSpec;
  /** Which source each sample comes from. */
  mix(options: MixOptions): LoadProgram;
  /**
   * The axis whose ranks get samples of their own, a "distinct" one. Balancing moves samples within
   * groups of `groupSize` shares: all by default, fewer to stay within a part of the network.
   */
  distribute(axis: string, groupSize?: number): LoadProgram;
  /** What a sample costs. Default: its tokens. */
  cost(costOf: (sample: SampleMetadata) => SampleCosts): LoadProgram;
  /** How work is evened out. Default: not at all, contiguous shares in global order. */
  balance(
    method: BalanceMethod,
    options?: { readonly level?: BalanceLevel; readonly equalCounts?: boolean },
  ): LoadProgram;
  /** An axis along which one rank reads and passes on: one whose ranks need the same. */
  broadcastAt(axis: string): LoadProgram;
  /** The planner of this program. */
  plan(): Planner;
}

/** A program that mixes its sources evenly and deals in order, until primitives say otherwise. */
export function loadProgram(options: {
  readonly tree: PlaceTree;
  readonly sources: readonly string[];
  readonly globalBatch: number;
  readonly microbatches?: number;
}): LoadProgram {
  const { tree, sources, globalBatch, microbatches = 1 } = options;
  return program({
    tree,
    sources,
    globalBatch,
    microbatches,
    mix: { schedule: [{ step: 0, weights: sources.map(() => 1) }] },
    groupSize: tree.shares,
    costOf: textCosts({ linear: 1, quadratic: 0 }),
    method: "order",
    level: "backbone",
    equalCounts: true,
    broadcast: [],
  });
}

function program(spec: LoadProgramSpec): LoadProgram {
  const { axes, shares } = spec.tree;
  const sharing = (axis: string, wanted: "distinct" | "same", verb: string): void => {
    const found = axes.find(({ name }) => name === axis);
    if (found?.data === wanted) return;
    const fit = axes.filter(({ data }) => data === wanted).map(({ name }) => name);
    throw new TriremeError(
      "LOAD_PROGRAM",
      `${verb} axis ${axis}: ${found === undefined ? "the tree has no such axis" : `its ranks' data is ${found.data}, not ${wanted}`}; use ${fit.join(" or ") || "none, there is no such axis"}`,
    );
  };
  return {
    spec,
    mix: (mix) => program({ ...spec, mix }),
    distribute(axis, groupSize = shares) {
      sharing(axis, "distinct", "distribute over");
      if (!Number.isInteger(groupSize) || groupSize < 1 || shares % groupSize !== 0) {
        throw new TriremeError(
          "LOAD_PROGRAM",
          `groups of ${groupSize} shares do not divide the ${shares} there are; use a divisor such as ${shares}`,
        );
      }
      return program({ ...spec, groupSize });
    },
    cost: (costOf) => program({ ...spec, costOf }),
    balance: (method, { level = "backbone", equalCounts = true } = {}) =>
      program({ ...spec, method, level, equalCounts }),
    broadcastAt(axis) {
      sharing(axis, "same", "broadcast along");
      return program({ ...spec, broadcast: [...new Set([...spec.broadcast, axis])] });
    },
    plan: () => createPlanner(spec),
  };
}
