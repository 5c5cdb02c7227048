/**
 * Auxiliary-loss-free balancing (DeepSeek-V3 §2.1.2): after a step, an expert that had fewer tokens
 * than the mean is made easier to choose by a fixed amount, one that had more is made harder.
 */
import type { Floats } from "./routing.ts";
import { requireLength, requireNumber } from "./shape.ts";

/**
 * Moves `bias` [E], in place, by `rate`·sign(mean − counts). `counts` are the tokens of each expert
 * over the whole global batch, added up over all data-, tensor- and context-parallel ranks.
 */
export function updateSelectionBias(bias: Floats, counts: ArrayLike<number>, rate: number): void {
  requireLength("counts", counts, bias.length, `a bias of ${bias.length} experts`);
  requireNumber("rate", rate, 0);
  for (let e = 0; e < bias.length; e++) requireNumber(`count of expert ${e}`, counts[e]!, 0);
  let total = 0;
  for (let e = 0; e < bias.length; e++) total += counts[e]!;
  const mean = total / bias.length;
  for (let e = 0; e < bias.length; e++) bias[e]! += rate * Math.sign(mean - counts[e]!);
}
