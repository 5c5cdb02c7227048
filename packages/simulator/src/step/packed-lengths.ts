/**
 * Packed documents: attention stays within each document, so that a row of short ones has less of it
 * than a row of one long one, while everything else costs the same.
 */
import { TriremeError } from "@trireme/core";
import { type Packing, causalPairs, packedRows } from "@trireme/dataloader";
import type { Plan } from "@trireme/workload";
import type { RankLayout } from "./rank-layout.ts";
import type { Variation } from "./step-description.ts";

/** Lengths in tokens of the documents in all rows of one microbatch of one replica. */
export type DocumentLengths = (replica: number, microbatch: number) => Iterable<number>;

/**
 * Lengths from a packing: sample j of the step is row j, and goes to replica floor(j / (global batch /
 * dp)), there to microbatches in order.
 * @throws TriremeError `PACKING` when it has fewer rows than the step samples.
 */
export function packedLengths(packing: Packing, plan: Plan): DocumentLengths {
  const rows = packedRows(packing);
  if (rows < plan.globalBatch) {
    throw new TriremeError(
      "PACKING",
      `packing of ${rows} rows, but a step takes globalBatch ${plan.globalBatch}`,
    );
  }
  return (replica, microbatch) => {
    const first = (replica * plan.globalBatch) / plan.dp + microbatch * plan.microbatch;
    const from = first === 0 ? 0 : packing.ends[first - 1]!;
    return packing.length.subarray(from, packing.ends[first + plan.microbatch - 1]);
  };
}

/**
 * What of a step varies by lengths: attention, by its pairs of query and key under a causal mask.
 * @throws TriremeError `PACKING` for a plan whose `document` is priced already.
 */
export function packedAttention(
  lengths: DocumentLengths,
  o: { readonly plan: Plan; readonly layout: RankLayout },
): Required<Pick<Variation, "attention">> {
  const { plan, layout } = o;
  if (plan.document !== undefined) {
    throw new TriremeError(
      "PACKING",
      `document ${plan.document} says how long documents are, and so do lengths; leave one out`,
    );
  }
  const whole = plan.microbatch * causalPairs([{ start: 0, end: plan.sequence }]);
  const known = new Map<number, number>();
  return {
    attention(rank, microbatch) {
      const replica = layout.replica[rank]!;
      const key = replica * 2 ** 26 + microbatch;
      let part = known.get(key);
      if (part === undefined) {
        let [pairs, tokens] = [0, 0];
        for (const end of lengths(replica, microbatch)) {
          pairs += causalPairs([{ start: 0, end }]);
          tokens += end;
        }
        const room = plan.microbatch * plan.sequence;
        if (!(tokens <= room)) {
          throw new TriremeError(
            "PACKING",
            `replica ${replica}, microbatch ${microbatch} has ${tokens} tokens, but microbatch(${plan.microbatch}) x sequence(${plan.sequence}) = ${room}`,
          );
        }
        known.set(key, (part = pairs / whole));
      }
      return part;
    },
  };
}
