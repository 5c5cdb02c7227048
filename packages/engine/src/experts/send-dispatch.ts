import { type Routing, planReceive, planSend } from "@trireme/moe-dispatch";
import type { Tape } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import type { Dispatch } from "./dispatch.ts";
import type { RowPass } from "./row-format.ts";
import { inverse, place } from "./row-orders.ts";
import type { RowWire } from "./row-wire.ts";

/** A dispatch that sends each row, and how many go to and come from each rank. */
export interface SendDispatch extends Dispatch {
  /** Slot of each row that is sent, in order of rank and expert. */
  readonly slots: Int32Array;
  readonly sends: readonly number[];
  /** In order of rank, then expert. */
  readonly receives: readonly number[];
}

/** Each row to the rank of its expert (all-to-all). Without a wire all experts are here. */
export function sendDispatch(
  tape: Tape,
  routing: Routing,
  weights: Float32Array,
  wire: RowWire | undefined,
): SendDispatch {
  const { kernels, pool } = tape;
  const { memory } = pool;
  const ranks = wire?.group.ranks ?? 1;
  const { tokens, topK, experts, expertIds } = routing;
  const send = planSend({ expertIds, topK, experts, ranks });
  const counts = new Int32Array(experts);
  if (wire === undefined) counts.set(send.counts);
  else wire.group.allToAll(send.counts, counts).wait();
  const receive = planReceive({ counts, ranks });
  const [slots, places] = [place(tape, send.slots), place(tape, send.rows)];
  const back = wire === undefined ? 0 : place(tape, receive.rows);
  const forth = wire === undefined ? 0 : place(tape, inverse(receive.rows));
  const factors = place(tape, weights);
  const [outgoing, incoming] = [send.slots.length, receive.received];
  const [sends, receives] = [Array.from(send.splits), Array.from(receive.splits)];
  /** Rows of the send order to the experts' ranks, there in expert order. */
  const travel = (rows: Tensor, width: number, pass: RowPass): Tensor => {
    if (wire === undefined) return rows;
    const arrived = pool.allocate([incoming, width]);
    wire.exchange(rows, sends, arrived, receives, pass);
    const sorted = tape.allocate([incoming, width]);
    kernels.spreadRows(arrived.pointer, forth, 0, sorted.pointer, incoming, 1, width);
    pool.free(arrived);
    tape.free(rows);
    return sorted;
  };
  /** And back to the send order of the tokens' rank. */
  const home = (rows: Tensor, width: number, pass: RowPass): Tensor => {
    if (wire === undefined) return rows;
    const leaving = pool.allocate([incoming, width]);
    kernels.spreadRows(rows.pointer, back, 0, leaving.pointer, incoming, 1, width);
    // What comes back is what is kept.
    if (pass === "forward") tape.free(rows);
    const arrived = tape.activation([outgoing, width]);
    wire.exchange(leaving, receives, arrived, sends, pass);
    pool.free(leaving);
    return arrived;
  };
  let returned: Tensor | undefined;
  return {
    slots: send.slots,
    sends,
    receives,
    starts: receive.expertStarts,
    toExperts: (x) => {
      const width = x.dims[1]!;
      const packed = tape.allocate([outgoing, width]);
      kernels.spreadRows(x.pointer, slots, 0, packed.pointer, outgoing, topK, width);
      return travel(packed, width, "forward");
    },
    toTokens: (rows) => {
      const width = rows.dims[1]!;
      returned = home(rows, width, "forward");
      const y = tape.allocate([tokens, width]);
      kernels.combineRows(returned.pointer, places, factors, y.pointer, tokens, topK, width);
      return y;
    },
    toTokensGradient: (dy) => {
      const width = dy.dims[1]!;
      const dweights = pool.allocate([Math.max(1, tokens * topK)]);
      const out = returned!.pointer;
      const sizes = [tokens, topK, width] as const;
      kernels.combineWeightsGradient(dy.pointer, out, places, dweights.pointer, ...sizes);
      const packed = tape.allocate([outgoing, width]);
      kernels.spreadRows(dy.pointer, slots, factors, packed.pointer, outgoing, topK, width);
      const gradient = view(memory, dweights).slice(0, tokens * topK);
      pool.free(dweights);
      tape.free(returned!);
      return { rows: travel(packed, width, "backward"), weights: gradient };
    },
    toExpertsGradient: (rows) => {
      const width = rows.dims[1]!;
      const arrived = home(rows, width, "backward");
      const dx = tape.allocate([tokens, width]);
      kernels.combineRows(arrived.pointer, places, 0, dx.pointer, tokens, topK, width);
      if (wire !== undefined) tape.free(arrived);
      return dx;
    },
  };
}
