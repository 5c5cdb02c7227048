import type { Plan } from "@trireme/workload";
import type { Range } from "../memory/slice.ts";

/**
 * The tokens of a sample that a context-parallel rank sees, in the order in which it keeps them.
 * Where keys and values travel, each rank takes a chunk from the front and one from the back, so that
 * causal attention is the same work for all (zig-zag; Llama 3, 2024, section 3.3.2); where heads are
 * exchanged for tokens, one run of tokens.
 */
export function contextPieces(
  sequence: number,
  rank: number,
  ranks: number,
  exchange: Plan["contextExchange"],
): readonly Range[] {
  if (ranks === 1) return [{ start: 0, count: sequence }];
  if (exchange === "all-to-all") {
    const count = sequence / ranks;
    return [{ start: rank * count, count }];
  }
  const count = sequence / (2 * ranks);
  return [rank, 2 * ranks - 1 - rank].map((chunk) => ({ start: chunk * count, count }));
}
