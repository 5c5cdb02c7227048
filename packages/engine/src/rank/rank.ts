/** One rank of a training run: its share of the model, and what it does in a step. */
import type { Communicator } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import type { Fp8Scaling, ResolvedRouter } from "@trireme/run";
import { type Action, actionsOf } from "@trireme/schedulers";
import type { Model, Plan, Stage } from "@trireme/workload";
import type { Bucket } from "../weights/bucket.ts";
import { type CorruptionOptions, CorruptionWatch } from "../tape/corruption-watch.ts";
import { CommunicatorGroups } from "../layout/communicator-groups.ts";
import { LayerRouters } from "../experts/layer-routers.ts";
import { DelayedScaling } from "../weights/delayed-scaling.ts";
import { generate, type GenerateOptions } from "../stage/generate.ts";
import { gradientBytes } from "../memory/gradient-block.ts";
import { type Tie, gradientNorm, reduceTied, tiesOf } from "../weights/gradient-sync.ts";
import { type HostMemory, moveState } from "../weights/host-place.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { OptimizerOptions } from "../weights/optimizer.ts";
import type { PackedBucket } from "../packed/packed-bucket.ts";
import type { Parallel } from "../layout/parallel.ts";
import { vocabRows, vocabStart } from "../parameters/parameter-specs.ts";
import { PipelinePlayer } from "../stage/pipeline-player.ts";
import type { Pool } from "../memory/pool.ts";
import { planFormat } from "../tape/product-format.ts";
import type { Products } from "../tape/products.ts";
import type { RankLayout } from "../layout/rank-layout.ts";
import type { RankPlace } from "../layout/rank-place.ts";
import { rankWeights } from "./rank-weights.ts";
import { computedStages } from "../stage/stage-compute.ts";
import { type ActionSeconds, rehearsedStages } from "../stage/stage-rehearsal.ts";
import { RecordedGroup } from "../layout/recorded-group.ts";
import { type GroupAxis, SpanLog } from "../layout/span-log.ts";
import { type StageBoundary, directBoundary, leaderBoundary } from "../staged/stage-boundary.ts";
import type { StageWeights } from "../weights/stage-weights.ts";
import { TokenBuffers } from "../stage/token-buffers.ts";
import type { StageOptions } from "../stage/stage-options.ts";
import { type WeightUpdate, updateWeights } from "../weights/update-weights.ts";
import { WeightWork } from "../weights/weight-work.ts";

/** What a rank is built from. */
export interface RankOptions {
  readonly model: Model;
  readonly plan: Plan;
  /** Where it stands, and its replica's schedule, lowered: with sends, receives and actions on weights. */
  readonly place: RankPlace;
  readonly optimizer: OptimizerOptions;
  readonly seed: number;
  readonly communicator: Communicator;
  readonly kernels: Kernels;
  /** Where the plan has the optimizer's states on the host. */
  readonly host: HostMemory | undefined;
  readonly pool: Pool;
  /** The clock of the spans. */
  readonly now: () => Seconds;
  /** Instead of computing, sleep this long. */
  readonly rehearse?: ActionSeconds | undefined;
  /** How to sleep; default for real. */
  readonly sleep?: ((seconds: Seconds) => void) | undefined;
  /** How experts are chosen and kept busy. */
  readonly router?: ResolvedRouter | undefined;
  /** Where the scales of FP8 operands come from; default current. */
  readonly fp8Scaling?: Fp8Scaling | undefined;
  /** What is done to tensors behind the rank's back, and what is looked for. */
  readonly corruption?: CorruptionOptions | undefined;
}

/** What one training step gives at one rank. */
export interface RankStep {
  /** Sum over the rank's tokens of −log p at the rank that holds the head, in nats; 0 elsewhere. */
  readonly lossSum: number;
  /** Norm of the whole model's gradient before clipping. */
  readonly gradientNorm: number;
}

export class Rank {
  readonly spans: SpanLog = new SpanLog();
  /** By stage of the schedule, ascending. */
  readonly weights: ReadonlyMap<number, StageWeights>;
  readonly #options: RankOptions;
  readonly #layout: RankLayout;
  readonly #stages: readonly Stage[];
  readonly #actions: readonly Action[];
  readonly #tokens: TokenBuffers;
  readonly #player: PipelinePlayer;
  readonly #boundary: StageBoundary;
  readonly #parallel: Parallel;
  readonly #ties: readonly Tie[];
  readonly #products: Products;
  readonly #routers: LayerRouters;
  readonly #delayed: DelayedScaling | undefined;
  readonly #experts: NonNullable<StageOptions["experts"]>;

  constructor(options: RankOptions) {
    const { model, plan, communicator, pool } = options;
    this.#options = options;
    const { layout, schedule } = options.place;
    this.#layout = layout;
    const { shares } = layout;
    const share = shares.tensor;
    const groups = new CommunicatorGroups(communicator);
    const tensor = share.ranks === 1 ? undefined : groups.of(layout.tensorRanks);
    const recorded = (members: readonly number[], axis: GroupAxis): RecordedGroup =>
      new RecordedGroup(groups.of(members), axis, this.spans, options.now);
    const sequence = plan.sequenceParallel;
    this.#parallel = {
      tensor: tensor && {
        group: recorded(layout.tensorRanks, "tp"),
        sequence,
        overlaps: plan.overlapGradientProducts,
      },
      context:
        plan.cp === 1
          ? undefined
          : { group: recorded(layout.contextRanks, "cp"), exchange: plan.contextExchange },
    };
    this.#actions = actionsOf(schedule, layout.pipelineRank);
    this.#stages = layout.stages.map(({ stage }) => stage);

    const vocab = { start: vocabStart(model.vocab, share), count: vocabRows(model.vocab, share) };
    this.#tokens = new TokenBuffers(pool, {
      rows: layout.samples.count,
      firstRow: layout.samples.start,
      sequence: plan.sequence,
      pieces: layout.pieces,
      vocab,
    });
    const { corruption, now } = options;
    const { rank } = communicator;
    const watch = corruption && new CorruptionWatch(pool.memory, rank, corruption, now);
    const { spans } = this;
    const overlapsWeightWork = plan.overlapDataParallel || schedule.directions === 2;
    const weightWork = new WeightWork({ overlapsWeightWork, spans, now, watch });
    // Ranks of two directions come to the same stages at different times: each stage has a group of its own.
    const groupOf = (members: readonly number[]): Communicator =>
      schedule.directions === 2 ? communicator.group(members) : groups.of(members);
    const scaling = options.fp8Scaling ?? "current";
    const isDelayed = plan.matrixPrecision === "fp8" && scaling === "delayed";
    const delayed = isDelayed ? new DelayedScaling() : undefined;
    this.#delayed = delayed;
    this.weights = rankWeights({ ...options, tensor, groups, groupOf, weightWork, watch, delayed });
    this.#ties = tiesOf(layout, this.weights, groups);
    this.#routers = new LayerRouters({ ...options, layout, weights: this.weights, groupOf });
    this.#experts = {
      group: plan.ep === 1 ? undefined : recorded(layout.expertRanks, "ep"),
      split: plan.etp === 1 ? undefined : recorded(layout.expertSplitRanks, "etp"),
      dispatch: plan.dispatch,
      // What the engine computes in float32 still travels in the precision of the plan.
      precision: plan.dispatchPrecision ?? (plan.precision === "fp32" ? "fp32" : "bf16"),
      router: (layer) => this.#routers.of(layer),
    };
    // Ranks that sleep have nothing to keep.
    const narrow = plan.precision === "bf16" && options.rehearse === undefined;
    const storage = narrow ? "bf16" : undefined;
    this.#products = { format: planFormat(plan, scaling, delayed), storage, watch };
    const { weights } = this;
    const products = this.#products;
    const { rankOfStage, pieces } = layout;
    const all = (plan.microbatch * plan.sequence) / plan.cp;
    const boundaryRows = sequence ? all / share.ranks : all;
    const compute =
      options.rehearse === undefined
        ? computedStages({
            ...options,
            weights,
            parallel: this.#parallel,
            pieces,
            tokens: this.#tokens,
            experts: this.#experts,
          })
        : rehearsedStages(options.rehearse, [boundaryRows, model.hidden], options);
    const stages = this.#stages;
    this.#boundary =
      layout.sums === undefined
        ? directBoundary(communicator, rankOfStage)
        : leaderBoundary(communicator, rankOfStage, tensor, pool);
    this.#player = new PipelinePlayer({
      ...options,
      stages,
      rankOfStage,
      weights,
      compute,
      products,
      weightWork,
      boundary: this.#boundary,
      boundaryRows,
      spans,
    });
  }

  /** Every trained bucket of the rank, in the order of the stages. */
  get buckets(): Bucket[] {
    return [...this.weights.values()].flatMap(({ buckets }) => buckets);
  }

  /** Corruptions done so far. */
  get strikes(): number {
    return this.#products.watch?.strikes ?? 0;
  }

  /** What is kept beside what is trained. */
  get kept(): Bucket[] {
    return [...this.weights.values()].flatMap(({ frozen, states }) => [...frozen, ...states]);
  }

  /** Of what is frozen, what is kept in fewer bits. */
  get packed(): PackedBucket[] {
    return [...this.weights.values()].flatMap(({ packed }) => packed);
  }

  /**
   * Forward, backward and update on the global batch [globalBatch, sequence + 1], of which the rank
   * reads its part. `update` counts from 1.
   */
  train(batch: Int32Array, update: number, learningRate: number): RankStep {
    const { spans, buckets } = this;
    const { communicator, host, now } = this.#options;
    spans.clear();
    this.#tokens.load(batch);
    for (const bucket of buckets) bucket.gradients.beginStep();
    this.#delayed?.beginStep();
    const lossSum = this.#player.train(this.#actions);
    for (const bucket of buckets) bucket.gradients.settle();
    this.#tie();
    const norm = this.#timed("NORM", 8, () => gradientNorm(buckets, communicator));
    moveState("TO_HOST", buckets, spans, now);
    const place = host === undefined ? "UPDATE" : "HOST_UPDATE";
    const timed: WeightUpdate["timed"] = (action, bytes, what) =>
      this.#timed(action === "UPDATE" ? place : action, bytes, what);
    updateWeights({ ...this.#options, buckets, update, learningRate, norm, timed });
    moveState("TO_DEVICE", buckets, spans, now);
    for (const bucket of buckets) this.#products.watch?.updated(bucket);
    this.shareValues();
    this.#routers.endStep();
    this.#delayed?.endStep();
    return { lossSum, gradientNorm: norm };
  }

  /** Sum over the rank's tokens of −log p at the rank that holds the head; nothing is changed. */
  evaluate(batch: Int32Array): number {
    this.spans.clear();
    this.#tokens.load(batch);
    return this.#player.evaluate(this.#actions);
  }

  /**
   * Continues a text; every rank takes part, the first replica computes, and all of them alike where
   * experts are dealt out or shared out, which may be over replicas. Returns the new tokens at the head.
   */
  generate(options: GenerateOptions): Int32Array {
    for (const weights of this.weights.values()) weights.unshard();
    for (const weights of this.weights.values()) weights.ready();
    const { model, plan } = this.#options;
    const { replica, context, depth, rankOfStage, shares } = this.#layout;
    const { ranks } = shares.tensor;
    const computes = (replica === 0 && context === 0) || plan.ep > 1 || plan.etp > 1;
    const tokens = computes
      ? generate({
          ...this.#options,
          ...options,
          stages: this.#stages.filter(({ stage }) => stage < depth),
          rankOfStage: rankOfStage.slice(0, depth),
          boundary: this.#boundary,
          weights: this.weights,
          parallel: this.#parallel,
          experts: this.#experts,
          products: this.#products,
          vocabParts: Array.from({ length: ranks }, (_, rank) =>
            vocabRows(model.vocab, { rank, ranks }),
          ),
        })
      : new Int32Array(0);
    for (const weights of this.weights.values()) weights.reshard();
    return tokens;
  }

  /** Gives new values to the other replicas, where each has updated its segment. */
  shareValues(): void {
    const start = this.#options.now();
    const { buckets } = this;
    const works = buckets.map((bucket) => bucket.share());
    for (const work of works) work?.wait();
    const bytes = buckets.reduce((sum, b) => (b.sharesValues ? sum + b.bytes : sum), 0);
    if (bytes > 0) this.spans.add("SHARE", -1, -1, start, this.#options.now(), bytes, 0);
  }

  /** Sums the gradients of tied tables, of both copies. */
  #tie(): void {
    for (const tie of this.#ties) {
      const bytes = gradientBytes((tie.kind === "pair" ? tie.bucket : tie.head).segment.gradient);
      this.#timed("TIED", bytes, () => reduceTied(this.#options, tie));
    }
  }

  #timed<T>(
    action: "TIED" | "NORM" | "UPDATE" | "HOST_UPDATE" | "TRUST",
    bytes: number,
    what: () => T,
  ): T {
    const start = this.#options.now();
    const result = what();
    this.spans.add(action, -1, -1, start, this.#options.now(), bytes, 0);
    return result;
  }
}
