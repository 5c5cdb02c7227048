import { type Routing, planDispatch } from "@trireme/moe-dispatch";
import type { Tape } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import type { Dispatch } from "./dispatch.ts";
import type { RowPass } from "./row-format.ts";
import { place } from "./row-orders.ts";
import type { RowWire } from "./row-wire.ts";

/**
 * All tokens to all ranks of the group, and their sums back (MegaScale-MoE, 2026, section 3.2); ranks
 * have equally many tokens.
 */
export function gatherDispatch(
  tape: Tape,
  routing: Routing,
  weights: Float32Array,
  wire: RowWire,
): Dispatch {
  const { kernels, pool } = tape;
  const { memory } = pool;
  const { group } = wire;
  const { rank, ranks } = group;
  const { tokens, topK, experts } = routing;
  const slotCount = tokens * topK;
  const ids = new Int32Array(slotCount * ranks);
  const factorsOfAll = new Float32Array(slotCount * ranks);
  group.allGather(routing.expertIds, ids).wait();
  group.allGather(weights, factorsOfAll).wait();
  const plan = planDispatch({ expertIds: ids, topK, experts, ranks });
  const local = experts / ranks;
  const first = plan.expertStarts[rank * local]!;
  const end = plan.expertStarts[(rank + 1) * local]!;
  const count = end - first;
  const starts = Int32Array.from(
    plan.expertStarts.subarray(rank * local, (rank + 1) * local + 1),
    (start) => start - first,
  );
  const slots = place(tape, plan.expertSlots.slice(first, end));
  // A slot of another rank's expert has no row here.
  const placeOf = (row: number): number => (row >= first && row < end ? row - first : -1);
  const places = place(tape, plan.expertRows.map(placeOf));
  const factors = place(tape, factorsOfAll);
  const even = Array.from({ length: ranks }, () => tokens);
  const everywhere = (x: Tensor, pass: RowPass): Tensor => {
    const all = pool.allocate([tokens * ranks, x.dims[1]!]);
    wire.gather(x, all, even, pass);
    return all;
  };
  const combine = (rows: Tensor, by: number, pass: RowPass): Tensor => {
    const width = rows.dims[1]!;
    const parts = pool.allocate([tokens * ranks, width]);
    kernels.combineRows(rows.pointer, places, by, parts.pointer, tokens * ranks, topK, width);
    const own = tape.allocate([tokens, width]);
    wire.reduce(parts, own, even, pass);
    pool.free(parts);
    return own;
  };
  let computed: Tensor | undefined;
  return {
    starts,
    toExperts: (x) => {
      const width = x.dims[1]!;
      const all = everywhere(x, "forward");
      const rows = tape.allocate([count, width]);
      kernels.spreadRows(all.pointer, slots, 0, rows.pointer, count, topK, width);
      pool.free(all);
      return rows;
    },
    toTokens: (rows) => {
      computed = rows;
      return combine(rows, factors, "forward");
    },
    toTokensGradient: (dy) => {
      const width = dy.dims[1]!;
      const all = everywhere(dy, "backward");
      const parts = pool.allocate([slotCount * ranks]);
      const out = computed!.pointer;
      const sizes = [tokens * ranks, topK, width] as const;
      kernels.combineWeightsGradient(all.pointer, out, places, parts.pointer, ...sizes);
      const own = new Float32Array(slotCount);
      group.reduceScatter(view(memory, parts), own).wait();
      const rows = tape.allocate([count, width]);
      kernels.spreadRows(all.pointer, slots, factors, rows.pointer, count, topK, width);
      pool.free(parts);
      pool.free(all);
      return { rows, weights: own };
    },
    toExpertsGradient: (rows) => combine(rows, 0, "backward"),
  };
}
