import { TriremeError } from "@trireme/core";
import type { CapacityParts } from "@trireme/run";
import type { Plan } from "@trireme/workload";
import { contextPieces } from "../layout/context-pieces.ts";
import type { Share } from "../parameters/spec-parts.ts";
import type { Range } from "../memory/slice.ts";

/** Where a rank's rows of a microbatch come from. */
export interface RowOrigin {
  readonly plan: Pick<
    Plan,
    "microbatch" | "sequence" | "cp" | "tp" | "contextExchange" | "sequenceParallel"
  >;
  /** The tokens of each sample that its context-parallel ranks hold here. */
  readonly pieces: readonly Range[];
  /** Its place among tensor-parallel ranks. */
  readonly tensor: Share;
}

/**
 * The part that each row of a rank's microbatch is in: a plan drops the tokens that another one drops
 * where both name the same parts. Throws `ENGINE_PLAN` for parts that lie on several ranks.
 */
export function capacityGroups(origin: RowOrigin, parts: CapacityParts): Int32Array {
  const { plan, pieces, tensor } = origin;
  const { sequence, contextExchange } = plan;
  const chunks = plan.sequenceParallel ? tensor : { rank: 0, ranks: 1 };
  const { microbatch = plan.microbatch, cp = plan.cp, tp = chunks.ranks } = parts;
  const halves = cp > 1 && contextExchange !== "all-to-all" ? 2 : 1;
  const rows = (microbatch * sequence) / (cp * tp);
  const refuse = (rule: string): TriremeError =>
    new TriremeError(
      "ENGINE_PLAN",
      `capacityParts of microbatch ${microbatch}, cp ${cp}, tp ${tp} ${rule} microbatch ${plan.microbatch}, ` +
        `cp ${plan.cp}, tp ${chunks.ranks}; use a divisor of the microbatch and multiples of cp and tp`,
    );
  const uneven =
    plan.microbatch % microbatch !== 0 || sequence % (halves * cp) !== 0 || !Number.isInteger(rows);
  if (![microbatch, cp, tp].every((n) => Number.isSafeInteger(n) && n > 0) || uneven) {
    throw refuse(`do not divide the ${sequence} tokens of a sample of`);
  }

  const [owner, place] = [new Int32Array(sequence), new Int32Array(sequence)];
  for (let rank = 0; rank < cp; rank++) {
    positionsOf(contextPieces(sequence, rank, cp, contextExchange)).forEach((position, i) => {
      owner[position] = rank;
      place[position] = i;
    });
  }
  const positions = positionsOf(pieces);
  const here = (plan.microbatch * positions.length) / chunks.ranks;
  const counts = new Map<number, number>();
  const groups = Int32Array.from({ length: here }, (_, i) => {
    const row = chunks.rank * here + i;
    const sample = Math.floor(row / positions.length);
    const position = positions[row % positions.length]!;
    const local = (sample % microbatch) * (sequence / cp) + place[position]!;
    const part = Math.floor(sample / microbatch) * cp + owner[position]!;
    const group = part * tp + Math.floor(local / rows);
    counts.set(group, (counts.get(group) ?? 0) + 1);
    return group;
  });
  if ([...counts.values()].some((count) => count !== rows)) throw refuse("lie on several ranks of");
  return groups;
}

/** Positions in the order in which a rank keeps them. */
function positionsOf(pieces: readonly Range[]): number[] {
  return pieces.flatMap(({ start, count }) => Array.from({ length: count }, (_, i) => start + i));
}
