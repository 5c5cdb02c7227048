/** The gradient sums of pipelines that differ, rank by rank, and their collectives. */
import type { GradientSum } from "@trireme/cost-model";
import type { Program } from "../program/program.ts";
import { laneOf } from "./describe-step.ts";
import type { StagedProgramOptions } from "./staged-costs.ts";
import { streams } from "./step-description.ts";

/** Layers of a stage whose gradients are summed together. */
export interface RangeSlice {
  readonly sums: readonly GradientSum[];
  /** What of the stage's layers it is. */
  readonly share: number;
  readonly name: string;
}

export class StagedRanges {
  readonly #program: Program;
  readonly #o: StagedProgramOptions;
  readonly #byRank = new Map<number, GradientSum[]>();
  readonly #declared = new Map<GradientSum, { reduce?: number; gather?: number }>();

  constructor(program: Program, o: StagedProgramOptions) {
    this.#program = program;
    this.#o = o;
    for (const sum of o.description.costs.sums) {
      for (const rank of sum.ranks) {
        const list = this.#byRank.get(rank);
        if (list === undefined) this.#byRank.set(rank, [sum]);
        else list.push(sum);
      }
    }
  }

  /** Sums that a rank takes part in, by layers, then by piece. */
  of(rank: number): readonly GradientSum[] {
    return this.#byRank.get(rank) ?? [];
  }

  /** The same by ranges of layers, ascending. */
  slices(rank: number): RangeSlice[] {
    const byRange = new Map<number, GradientSum[]>();
    for (const sum of this.of(rank)) {
      const list = byRange.get(sum.firstLayer);
      if (list === undefined) byRange.set(sum.firstLayer, [sum]);
      else list.push(sum);
    }
    const layersOf = ({ firstLayer, endLayer }: GradientSum): number => endLayer - firstLayer;
    const ranges = [...byRange.values()];
    const whole = ranges.reduce((n, sums) => n + layersOf(sums[0]!), 0);
    return ranges.map((sums) => ({
      sums,
      share: layersOf(sums[0]!) / whole,
      name: `${sums[0]!.firstLayer}`,
    }));
  }

  /** The collective of a sum, or of the weights that come back; undefined where there is nothing to do. */
  collective(what: "reduce" | "gather", sum: GradientSum): number | undefined {
    const duration = sum[what];
    if (duration === 0 || sum.ranks.length === 1) return undefined;
    let ids = this.#declared.get(sum);
    if (ids === undefined) this.#declared.set(sum, (ids = {}));
    const known = ids[what];
    if (known !== undefined) return known;
    const program = this.#program;
    const { ranks, firstLayer, endLayer, kind, bytes, gatheredBytes } = sum;
    const gather = what === "gather";
    const label = program.label({
      kind: gather ? "all-gather" : kind,
      lane: laneOf(this.#o.cluster, ranks),
      action: `${gather ? "UNSHARD" : "REDUCE_GRAD"}/layers ${firstLayer}-${endLayer - 1}`,
      bytes: gather ? gatheredBytes : bytes,
    });
    const group = program.group(ranks);
    const id = program.collective({ group, stream: streams.dp, duration, label });
    ids[what] = id;
    return id;
  }
}
