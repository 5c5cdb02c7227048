import { type Routing, tokenLayout } from "@trireme/moe-dispatch";
import type { Tensor } from "../memory/tensor.ts";
import type { Tape } from "../tape/tape.ts";
import type { Dispatch } from "./dispatch.ts";
import type { RowWire } from "./row-wire.ts";
import { sendDispatch } from "./send-dispatch.ts";

/**
 * Each token once to each rank that holds some of its experts (DeepEP): there it goes to all of them,
 * and one row comes back, their weighted sum.
 */
export function uniqueDispatch(
  tape: Tape,
  routing: Routing,
  weights: Float32Array,
  wire: RowWire,
): Dispatch {
  const { group } = wire;
  const { ranks } = group;
  const { tokens, topK, experts, expertIds } = routing;
  const { inRank } = tokenLayout({ expertIds, topK, experts, ranks });
  // Between ranks a rank is what an expert is elsewhere, and every row counts once.
  const slots = tokens * ranks;
  const toRanks: Routing = {
    tokens,
    topK: ranks,
    experts: ranks,
    expertIds: Int32Array.from(inRank, (is, slot) => (is === 1 ? slot % ranks : -1)),
    weights: new Float32Array(slots),
  };
  const between = sendDispatch(tape, toRanks, new Float32Array(slots).fill(1), wire);
  const { sends, receives } = between;
  const split = (counts: readonly number[]): { counts: number[] } => ({
    counts: counts.map((count) => count * topK),
  });
  const local = experts / ranks;

  /** Where the choices of the rows that are sent stand in [T, k], −1 for experts elsewhere. */
  const choices = new Int32Array(between.slots.length * topK).fill(-1);
  between.slots.forEach((slot, row) => {
    const [token, rank] = [Math.floor(slot / ranks), slot % ranks];
    for (let j = 0; j < topK; j++) {
      const e = expertIds[token * topK + j]!;
      if (e !== -1 && Math.floor(e / local) === rank) choices[row * topK + j] = token * topK + j;
    }
  });
  const received = between.starts[1]! * topK;
  const [ids, factors] = [new Int32Array(received), new Float32Array(received)];
  const idOf = (slot: number): number => (slot === -1 ? -1 : expertIds[slot]! % local);
  const weightOf = (slot: number): number => (slot === -1 ? 0 : weights[slot]!);
  group.allToAllV(choices.map(idOf), split(sends), ids, split(receives)).wait();
  const sent = Float32Array.from(choices, weightOf);
  group.allToAllV(sent, split(sends), factors, split(receives)).wait();
  const here: Routing = {
    tokens: between.starts[1]!,
    topK,
    experts: local,
    expertIds: ids,
    weights: factors,
  };
  const within = sendDispatch(tape, here, factors, undefined);

  /** Gives back what the next step has read. */
  const after = <T>(mid: Tensor, next: (mid: Tensor) => T): T => {
    const result = next(mid);
    tape.free(mid);
    return result;
  };
  return {
    starts: within.starts,
    toExperts: (x) => after(between.toExperts(x), (mid) => within.toExperts(mid)),
    toTokens: (rows) => after(within.toTokens(rows), (mid) => between.toTokens(mid)),
    toTokensGradient: (dy) => {
      const { rows: sums } = between.toTokensGradient(dy);
      const { rows, weights: there } = after(sums, (mid) => within.toTokensGradient(mid));
      const back = new Float32Array(choices.length);
      group.allToAllV(there, split(receives), back, split(sends)).wait();
      const gradient = new Float32Array(tokens * topK);
      choices.forEach((slot, i) => {
        if (slot !== -1) gradient[slot] = back[i]!;
      });
      return { rows, weights: gradient };
    },
    toExpertsGradient: (rows) =>
      after(within.toExpertsGradient(rows), (mid) => between.toExpertsGradient(mid)),
  };
}
