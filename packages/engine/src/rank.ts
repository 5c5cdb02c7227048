/** One rank of a training run: its share of the model, and what it does in a step. */
import type { Communicator } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import { type Action, type Schedule, actionsOf } from "@trireme/schedulers";
import { type Mesh, coordinate, groupOf, rankAt } from "@trireme/topology";
import { type Model, type Plan, type Stage, stages } from "@trireme/workload";
import { generate, type GenerateOptions } from "./generate.ts";
import { gradientNorm, reduceGradient, type SyncGroups, tiedTable } from "./gradient-sync.ts";
import type { Kernels } from "./kernels/kernels.ts";
import { type AdamWOptions, adamw, clipFactor } from "./optimizer.ts";
import { stageParameters } from "./parameter-specs.ts";
import { ParameterSet } from "./parameters.ts";
import { PipelinePlayer } from "./pipeline-player.ts";
import type { Pool } from "./pool.ts";
import { SpanLog } from "./span-log.ts";
import { TokenBuffers } from "./token-buffers.ts";

/** What a rank is built from. */
export interface RankOptions {
  readonly model: Model;
  readonly plan: Plan;
  /** Axes `dp` and `pp` (and others of size 1) over all ranks. */
  readonly mesh: Mesh;
  /** One replica's schedule, lowered: with its sends and receives. */
  readonly schedule: Schedule;
  /** `clip` is the largest norm the gradient keeps; 0 for no limit. */
  readonly optimizer: AdamWOptions & { readonly clip: number };
  readonly seed: number;
  readonly communicator: Communicator;
  readonly kernels: Kernels;
  readonly pool: Pool;
  /** The clock of the spans. */
  readonly now: () => Seconds;
}

/** What one training step gives at one rank. */
export interface RankStep {
  /** Sum over the rank's tokens of −log p at the rank that holds the head, in nats; 0 elsewhere. */
  readonly lossSum: number;
  /** Norm of the whole model's gradient before clipping. */
  readonly gradientNorm: number;
}

export class Rank {
  readonly parameters: ParameterSet;
  readonly spans: SpanLog = new SpanLog();
  readonly #options: RankOptions;
  readonly #stages: readonly Stage[];
  readonly #rankOfStage: readonly number[];
  readonly #actions: readonly Action[];
  readonly #tokens: TokenBuffers;
  readonly #player: PipelinePlayer;
  readonly #groups: SyncGroups;
  readonly #firstRow: number;
  /** False where the tied table is the second copy: it is neither counted nor stored. */
  readonly #ownsTable: boolean;

  constructor(options: RankOptions) {
    const { model, plan, mesh, schedule, communicator, pool, seed } = options;
    const { rank } = communicator;
    this.#options = options;
    const at = coordinate(mesh, rank);
    const axis = (name: string): number => mesh.axes.findIndex((a) => a.name === name);
    const pipelineRank = at[axis("pp")]!;
    this.#stages = stages(model, plan).filter((s) => schedule.stageRank[s.stage] === pipelineRank);
    this.#rankOfStage = schedule.stageRank.map((r) => rankAt(mesh, at.with(axis("pp"), r)));
    this.#actions = actionsOf(schedule, pipelineRank);

    const samples = plan.globalBatch / plan.dp;
    this.#firstRow = at[axis("dp")]! * samples;
    this.#tokens = new TokenBuffers(pool, samples, plan.sequence);
    const specs = this.#stages.flatMap((stage) => stageParameters(model, stage));
    const unique = new Map(specs.map((spec) => [spec.name, spec]));
    this.parameters = new ParameterSet(pool, [...unique.values()], seed);

    const [first, last] = [this.#rankOfStage[0]!, this.#rankOfStage.at(-1)!];
    const twice = model.tied && first !== last && (rank === first || rank === last);
    this.#ownsTable = !(twice && rank === last);
    this.#groups = {
      data: communicator.group(groupOf(mesh, rank, "dp")),
      pipeline: communicator.group(groupOf(mesh, rank, "pp")),
      tied: twice ? communicator.group([first, last].toSorted((a, b) => a - b)) : undefined,
    };
    this.#player = new PipelinePlayer({
      ...options,
      stages: this.#stages,
      rankOfStage: this.#rankOfStage,
      parameters: this.parameters,
      tokens: this.#tokens,
      spans: this.spans,
    });
  }

  /**
   * Forward, backward and update on the global batch [globalBatch, sequence + 1], of which the rank
   * reads its rows. `update` counts from 1.
   */
  train(batch: Int32Array, update: number, learningRate: number): RankStep {
    const { kernels, pool, optimizer, now } = this.#options;
    const { parameters, spans } = this;
    spans.clear();
    this.#tokens.load(batch, this.#firstRow);
    kernels.fill(parameters.gradients.pointer, 0, parameters.gradients.size);
    const lossSum = this.#player.train(this.#actions);

    const { data, tied } = this.#groups;
    const { memory } = pool;
    let before = now();
    if (data.ranks > 1) {
      const bytes = reduceGradient(memory, parameters.gradients, data);
      spans.add("REDUCE_GRAD", this.#stages[0]!.stage, -1, before, now(), bytes, 0);
      before = now();
    }
    if (tied !== undefined) {
      const bytes = reduceGradient(memory, parameters.get(tiedTable).gradient, tied);
      spans.add("TIED", -1, -1, before, now(), bytes, 0);
      before = now();
    }
    const norm = gradientNorm(kernels, parameters, this.owns, this.#groups.pipeline);
    adamw(kernels, parameters, optimizer, update, learningRate, clipFactor(norm, optimizer.clip));
    spans.add("UPDATE", -1, -1, before, now(), 0, 0);
    return { lossSum, gradientNorm: norm };
  }

  /** Sum over the rank's tokens of −log p at the rank that holds the head; nothing is changed. */
  evaluate(batch: Int32Array): number {
    this.spans.clear();
    this.#tokens.load(batch, this.#firstRow);
    return this.#player.evaluate(this.#actions);
  }

  /** Continues a text; every rank of the first replica takes part. Returns the new tokens at the head. */
  generate(options: GenerateOptions): Int32Array {
    return generate({
      ...this.#options,
      ...options,
      stages: this.#stages,
      rankOfStage: this.#rankOfStage,
      parameters: this.parameters,
    });
  }

  /** Whether this rank's copy of a parameter is the one that is counted and stored. */
  readonly owns = (name: string): boolean => this.#ownsTable || name !== tiedTable;

  /** Whether the rank belongs to the first data-parallel replica, which speaks for all. */
  get isFirstReplica(): boolean {
    return this.#groups.data.rank === 0;
  }
}
