/**
 * How rows of tokens travel to the ranks of their experts and back: each row to the rank of its
 * expert (all-to-all), or all tokens to all ranks of the group (MegaScale-MoE, 2026, section 3.2).
 * The plans are those of `@trireme/moe-dispatch`.
 */
import type { LayerGroup } from "../recorded-group.ts";
import { type Routing, planDispatch, planReceive, planSend } from "@trireme/moe-dispatch";
import type { Tape } from "../tape.ts";
import { type Tensor, view } from "../tensor.ts";

/** One microbatch's rows at the experts of one rank. */
export interface Dispatch {
  /** [L + 1] first row of each of the rank's experts. */
  readonly starts: Int32Array;
  /** Rows of tokens x [T, width], in expert order: a tensor of the tape. */
  toExperts(x: Tensor): Tensor;
  /** Tokens [T, width] as the weighted sums of their experts' rows: a tensor of the tape. */
  toTokens(rows: Tensor): Tensor;
  /** The gradient of `toTokens`: that of the rows, and of the weights [T, k]. */
  toTokensGradient(dy: Tensor): { readonly rows: Tensor; readonly weights: Float32Array };
  /** The gradient of `toExperts`: that of the tokens. */
  toExpertsGradient(rows: Tensor): Tensor;
}

/** Copies to the rank's memory; 4-byte elements alike. */
function place(tape: Tape, values: Int32Array | Float32Array): number {
  const tensor = tape.allocate([Math.max(1, values.length)]);
  const { buffer } = tape.pool.memory;
  const target =
    values instanceof Int32Array
      ? new Int32Array(buffer, tensor.pointer, values.length)
      : new Float32Array(buffer, tensor.pointer, values.length);
  target.set(values);
  return tensor.pointer;
}

/** Inverse of a permutation. */
function inverse(order: Int32Array): Int32Array {
  const out = new Int32Array(order.length);
  order.forEach((to, from) => {
    out[to] = from;
  });
  return out;
}

const lone = { ranks: 1, rank: 0 } as const;

/** Each row to the rank of its expert. Without a group all experts are here. */
export function sendDispatch(
  tape: Tape,
  routing: Routing,
  weights: Float32Array,
  group: LayerGroup | undefined,
): Dispatch {
  const { kernels, pool } = tape;
  const { memory } = pool;
  const { ranks } = group ?? lone;
  const { tokens, topK, experts, expertIds } = routing;
  const send = planSend({ expertIds, topK, experts, ranks });
  const counts = new Int32Array(experts);
  if (group === undefined) counts.set(send.counts);
  else group.allToAll(send.counts, counts).wait();
  const receive = planReceive({ counts, ranks });
  const [slots, places] = [place(tape, send.slots), place(tape, send.rows)];
  const back = group === undefined ? 0 : place(tape, receive.rows);
  const forth = group === undefined ? 0 : place(tape, inverse(receive.rows));
  const factors = place(tape, weights);
  const [outgoing, incoming] = [send.slots.length, receive.received];
  const split = (counted: Int32Array, width: number): { counts: number[] } => ({
    counts: Array.from(counted, (n) => n * width),
  });
  /** Rows of the send order to the experts' ranks, there in expert order. */
  const travel = (rows: Tensor, width: number): Tensor => {
    if (group === undefined) return rows;
    const arrived = pool.allocate([incoming, width]);
    const [sends, receives] = [split(send.splits, width), split(receive.splits, width)];
    group.allToAllV(view(memory, rows), sends, view(memory, arrived), receives).wait();
    const sorted = tape.allocate([incoming, width]);
    kernels.spreadRows(arrived.pointer, forth, 0, sorted.pointer, incoming, 1, width);
    pool.free(arrived);
    tape.free(rows);
    return sorted;
  };
  /** And back to the send order of the tokens' rank. */
  const home = (rows: Tensor, width: number): Tensor => {
    if (group === undefined) return rows;
    const leaving = pool.allocate([incoming, width]);
    kernels.spreadRows(rows.pointer, back, 0, leaving.pointer, incoming, 1, width);
    const arrived = tape.allocate([outgoing, width]);
    const [sends, receives] = [split(receive.splits, width), split(send.splits, width)];
    group.allToAllV(view(memory, leaving), sends, view(memory, arrived), receives).wait();
    pool.free(leaving);
    return arrived;
  };
  let returned: Tensor | undefined;
  return {
    starts: receive.expertStarts,
    toExperts: (x) => {
      const width = x.dims[1]!;
      const packed = tape.allocate([outgoing, width]);
      kernels.spreadRows(x.pointer, slots, 0, packed.pointer, outgoing, topK, width);
      return travel(packed, width);
    },
    toTokens: (rows) => {
      const width = rows.dims[1]!;
      returned = home(rows, width);
      const y = tape.allocate([tokens, width]);
      kernels.combineRows(returned.pointer, places, factors, y.pointer, tokens, topK, width);
      return y;
    },
    toTokensGradient: (dy) => {
      const width = dy.dims[1]!;
      const dweights = pool.allocate([Math.max(1, tokens * topK)]);
      const out = returned!.pointer;
      kernels.combineWeightsGradient(
        dy.pointer,
        out,
        places,
        dweights.pointer,
        tokens,
        topK,
        width,
      );
      const packed = tape.allocate([outgoing, width]);
      kernels.spreadRows(dy.pointer, slots, factors, packed.pointer, outgoing, topK, width);
      const gradient = view(memory, dweights).slice(0, tokens * topK);
      pool.free(dweights);
      return { rows: travel(packed, width), weights: gradient };
    },
    toExpertsGradient: (rows) => {
      const width = rows.dims[1]!;
      const arrived = home(rows, width);
      const dx = tape.allocate([tokens, width]);
      kernels.combineRows(arrived.pointer, places, 0, dx.pointer, tokens, topK, width);
      return dx;
    },
  };
}

/** All tokens to all ranks of the group, and their sums back; ranks have equally many tokens. */
export function gatherDispatch(
  tape: Tape,
  routing: Routing,
  weights: Float32Array,
  group: LayerGroup,
): Dispatch {
  const { kernels, pool } = tape;
  const { memory } = pool;
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
  const everywhere = (x: Tensor): Tensor => {
    const width = x.dims[1]!;
    const all = pool.allocate([tokens * ranks, width]);
    group.allGather(view(memory, x), view(memory, all)).wait();
    return all;
  };
  const spread = (x: Tensor, by: number): Tensor => {
    const all = everywhere(x);
    const width = x.dims[1]!;
    const rows = tape.allocate([count, width]);
    kernels.spreadRows(all.pointer, slots, by, rows.pointer, count, topK, width);
    pool.free(all);
    return rows;
  };
  const combine = (rows: Tensor, by: number): Tensor => {
    const width = rows.dims[1]!;
    const parts = pool.allocate([tokens * ranks, width]);
    kernels.combineRows(rows.pointer, places, by, parts.pointer, tokens * ranks, topK, width);
    const own = tape.allocate([tokens, width]);
    group.reduceScatter(view(memory, parts), view(memory, own)).wait();
    pool.free(parts);
    return own;
  };
  let computed: Tensor | undefined;
  return {
    starts,
    toExperts: (x) => spread(x, 0),
    toTokens: (rows) => {
      computed = rows;
      return combine(rows, factors);
    },
    toTokensGradient: (dy) => {
      const width = dy.dims[1]!;
      const all = everywhere(dy);
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
    toExpertsGradient: (rows) => combine(rows, 0),
  };
}
