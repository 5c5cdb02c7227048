/**
 * A stage by its sections, the embedding, each layer and the head, where replicas share out weights
 * or gradients (ZeRO 2 and 3): a section's weights are gathered while the one before it computes, and
 * its gradients summed behind the one after it, each microbatch's, so that a rank has whole weights
 * of two sections at a time and whole gradients of two (Zhao et al., PyTorch FSDP, 2023, section 3.3).
 */
import type { Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Bucket } from "./bucket.ts";
import type { CorruptionWatch } from "../tape/corruption-watch.ts";
import type { PackedBucket } from "../packed/packed-bucket.ts";

/** Starts communication and notes how long it takes; returns it, over or under way. */
type Follow = (
  kind: "UNSHARD" | "REDUCE_GRAD",
  bytes: Bytes,
  begin: () => readonly Work[],
) => readonly Work[];

/** Weights that are trained, or frozen and maybe in fewer bits. */
type SectionBucket = Bucket | PackedBucket;

/** What sections are made of. */
export interface StageSectionsOptions {
  /** In the order of the forward pass; a tied table is in two. */
  readonly sections: readonly (readonly SectionBucket[])[];
  readonly follow: Follow;
  /** Told of gradients before they are summed. */
  readonly watch?: CorruptionWatch | undefined;
}

export class StageSections {
  readonly #options: StageSectionsOptions;
  /** Gathered, or on the way. */
  readonly #gathering = new Map<SectionBucket, Work | undefined>();
  #summing: readonly Work[] = [];
  /** All weights are held from outside. */
  #pinned = false;

  constructor(options: StageSectionsOptions) {
    this.#options = options;
  }

  /** Waits for the weights of a section, frees others, and begins to gather those of its neighbour. */
  use(section: number, toward: 1 | -1): void {
    if (this.#pinned) return;
    const { sections } = this.#options;
    const own = sections[section]!;
    const next = sections[section + toward] ?? [];
    for (const bucket of this.#gathering.keys()) {
      if (!own.includes(bucket) && !next.includes(bucket)) this.#drop(bucket);
    }
    this.#gather(own);
    for (const bucket of own) this.#gathering.get(bucket)?.wait();
    this.#gather(next);
  }

  /** Makes room for the gradients of a section. */
  open(section: number): void {
    for (const bucket of this.#trained(section)) bucket.gradients.open();
  }

  /** Begins to add a section's gradients, over the replicas, to the rank's share, and frees them then. */
  sum(section: number): void {
    this.settle();
    const buckets = this.#trained(section);
    for (const bucket of buckets) this.#options.watch?.gradients(bucket);
    const bytes = buckets.reduce((all, { gradients }) => all + gradients.reducedBytes, 0);
    this.#summing = this.#options.follow("REDUCE_GRAD", bytes, () =>
      buckets.map((bucket) => bucket.gradients.addReduced()),
    );
  }

  /** Waits for the sums under way. */
  settle(): void {
    for (const work of this.#summing) work.wait();
    this.#summing = [];
  }

  /** Frees the weights until they are used again. */
  leave(): void {
    for (const bucket of this.#gathering.keys()) this.#drop(bucket);
  }

  /** Leaves gathering and freeing to the stage, or takes it back. */
  pin(pinned: boolean): void {
    this.#pinned = pinned;
  }

  #trained(section: number): readonly Bucket[] {
    const isTrained = (bucket: SectionBucket): bucket is Bucket => !bucket.frozen;
    return this.#options.sections[section]!.filter(isTrained);
  }

  #gather(buckets: readonly SectionBucket[]): void {
    const fresh = buckets.filter((bucket) => !this.#gathering.has(bucket));
    for (const bucket of fresh) this.#gathering.set(bucket, undefined);
    const sharded = fresh.filter((bucket) => bucket.sharded);
    if (sharded.length === 0) return;
    const bytes = sharded.reduce((all, bucket) => all + bucket.bytes, 0);
    this.#options.follow("UNSHARD", bytes, () =>
      sharded.map((bucket) => {
        const work = bucket.unshard()!;
        this.#gathering.set(bucket, work);
        return work;
      }),
    );
  }

  #drop(bucket: SectionBucket): void {
    this.#gathering.get(bucket)?.wait();
    this.#gathering.delete(bucket);
    bucket.reshard();
  }
}
