/**
 * Actions on the weights of whole stages: gathered before use, freed after it, gradients summed
 * behind the last backward. What they start goes on behind the computing that follows
 * (MegaScale, Jiang et al., NSDI 2024, section 3.2), or is waited for where the plan asks for that.
 */
import type { Work } from "@trireme/collectives";
import type { Bytes, Seconds } from "@trireme/core";
import type { ActionKind } from "@trireme/schedulers";
import type { CorruptionWatch } from "../tape/corruption-watch.ts";
import type { SpanLog } from "../layout/span-log.ts";
import type { StageWeights } from "./stage-weights.ts";

/** The actions on whole stages. */
type WeightAction = Extract<ActionKind, "UNSHARD" | "RESHARD" | "REDUCE_GRAD">;

export function isWeightAction(kind: ActionKind): kind is WeightAction {
  return kind === "UNSHARD" || kind === "RESHARD" || kind === "REDUCE_GRAD";
}

interface Pending {
  readonly kind: WeightAction;
  readonly stage: number;
  readonly start: Seconds;
  readonly works: readonly Work[];
  readonly bytes: Bytes;
}

/** What weight work needs of a rank. */
export interface WeightWorkOptions {
  /** Whether what is started goes on behind the actions that follow. */
  readonly overlapsWeightWork: boolean;
  readonly spans: SpanLog;
  readonly now: () => Seconds;
  /** Told of gradients before they are summed. */
  readonly watch?: CorruptionWatch | undefined;
}

export class WeightWork {
  readonly #options: WeightWorkOptions;
  #pending: Pending[] = [];

  constructor(options: WeightWorkOptions) {
    this.#options = options;
  }

  play(kind: WeightAction, stage: number, weights: StageWeights): void {
    if (kind === "RESHARD") {
      weights.reshard();
      return;
    }
    if (weights.sections !== undefined) {
      // Sections gather and sum by themselves, as the passes come to them.
      if (kind === "REDUCE_GRAD") weights.sections.settle();
      return;
    }
    const { watch } = this.#options;
    if (kind === "REDUCE_GRAD") for (const bucket of weights.buckets) watch?.gradients(bucket);
    const bytes =
      kind === "UNSHARD"
        ? weights.gathered.reduce((sum, bucket) => sum + bucket.bytes, 0)
        : weights.reducedBytes;
    const begin = (): readonly Work[] =>
      kind === "UNSHARD" ? weights.unshard() : weights.reduce();
    this.follow(kind, stage, bytes, begin);
  }

  /** Starts work, and notes when it is over; waits for it where it is not to go on behind others. */
  follow(
    kind: WeightAction,
    stage: number,
    bytes: Bytes,
    begin: () => readonly Work[],
  ): readonly Work[] {
    const { overlapsWeightWork, now } = this.#options;
    const start = now();
    const works = begin();
    this.#pending.push({ kind, stage, start, works, bytes });
    if (!overlapsWeightWork) this.finish();
    return works;
  }

  /** Notes what is over. */
  poll(): void {
    if (this.#pending.length > 0) this.#end(({ works }) => works.every((work) => work.done));
  }

  /** Waits for all that is under way. */
  finish(): void {
    this.#end(() => true);
  }

  #end(isDue: (pending: Pending) => boolean): void {
    const { spans, now } = this.#options;
    this.#pending = this.#pending.filter((pending) => {
      if (!isDue(pending)) return true;
      const { kind, stage, start, works, bytes } = pending;
      for (const work of works) work.wait();
      spans.add(kind, stage, -1, start, now(), bytes, 0);
      return false;
    });
  }
}
