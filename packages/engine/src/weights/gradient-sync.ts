/** What ranks do between backward and update beyond the sum over replicas: tied tables, and the norm. */
import type { Communicator } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Bucket } from "./bucket.ts";
import type { CommunicatorGroups } from "../layout/communicator-groups.ts";
import {
  type GradientPlace,
  addGradients,
  copyGradients,
  gradientBytes,
  gradientElements,
} from "../memory/gradient-block.ts";
import type { RankLayout } from "../layout/rank-layout.ts";
import type { StageWeights } from "./stage-weights.ts";

/** Another bucket that holds the same table: on this rank, or at the other rank of a pair. */
export type Tie =
  | { readonly kind: "local"; readonly embedding: Bucket; readonly head: Bucket }
  | { readonly kind: "pair"; readonly bucket: Bucket; readonly pair: Communicator };

/** What a rank does for the tables of a tied model that it holds. */
export function tiesOf(
  { rankOfStage, ties }: RankLayout,
  weights: ReadonlyMap<number, StageWeights>,
  groups: CommunicatorGroups,
): Tie[] {
  const table = (stage: number): Bucket | undefined => weights.get(stage)?.table;
  const embedding = ties.map((tie) => table(tie.embedding)).find((t) => t !== undefined);
  const head = ties.map((tie) => table(tie.head)).find((t) => t !== undefined);
  // Both uses are here: of one direction, or of one each, whose gradients have been summed by then.
  if (embedding !== undefined && head !== undefined) return [{ kind: "local", embedding, head }];
  return ties.flatMap((tie): Tie[] => {
    const bucket = table(tie.embedding) ?? table(tie.head);
    if (bucket === undefined) return [];
    const pair = [rankOfStage[tie.embedding]!, rankOfStage[tie.head]!].toSorted((a, b) => a - b);
    return [{ kind: "pair", bucket, pair: groups.of(pair) }];
  });
}

/** Adds up the gradients of the two uses of a tied table; returns the bytes that it moved. */
export function reduceTied(place: GradientPlace, tie: Tie): Bytes {
  if (tie.kind === "pair") {
    const { gradient } = tie.bucket.segment;
    tie.pair.allReduce(gradientElements(place.pool.memory, gradient)).wait();
    return gradientBytes(gradient);
  }
  const [embedding, head] = [tie.embedding.segment.gradient, tie.head.segment.gradient];
  addGradients(place, head, embedding);
  copyGradients(place, embedding, head);
  return 0;
}

/**
 * The Euclidean norm of the whole model's gradient: every parameter counted once, summed in double
 * precision in the order of the ranks, so that all ranks clip by the same factor.
 */
export function gradientNorm(buckets: readonly Bucket[], all: Communicator): number {
  let squares = 0;
  for (const { speaks, gradients } of buckets) if (speaks) squares += gradients.squares;
  const parts = new Float64Array(all.ranks);
  // The communicator carries 32-bit numbers: a double travels as two of them.
  const mine = new Int32Array(Float64Array.of(squares).buffer);
  all.allGather(mine, new Int32Array(parts.buffer)).wait();
  return Math.sqrt(parts.reduce((sum, square) => sum + square, 0));
}
