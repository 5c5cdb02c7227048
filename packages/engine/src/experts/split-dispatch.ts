import { planReceive } from "@trireme/moe-dispatch";
import type { Tape } from "../tape/tape.ts";
import type { Tensor } from "../memory/tensor.ts";
import type { Dispatch } from "./dispatch.ts";
import type { RowPass } from "./row-format.ts";
import { inverse, place } from "./row-orders.ts";
import type { RowWire } from "./row-wire.ts";

/**
 * A dispatch to ranks that share out each expert's matrices (expert-tensor parallelism; Liu et al.,
 * MoE Parallel Folding, 2025): each of them sees the rows of all, computes a part of their sum, and
 * keeps its own rows of it.
 */
export function splitDispatch(tape: Tape, own: Dispatch, wire: RowWire): Dispatch {
  const { kernels, pool } = tape;
  const { ranks } = wire.group;
  const experts = own.starts.length - 1;
  const mine = Int32Array.from({ length: experts }, (_, e) => own.starts[e + 1]! - own.starts[e]!);
  const counts = new Int32Array(experts * ranks);
  wire.group.allGather(mine, counts).wait();
  // By rank and expert as they come; the experts take them by expert and rank.
  const { received: all, splits, expertStarts, rows: order } = planReceive({ counts, ranks });
  const totals = Array.from(splits);
  const [back, forth] = [place(tape, order), place(tape, inverse(order))];
  const [ownRows] = own.starts.subarray(experts);
  const shared = (rows: Tensor, pass: RowPass): Tensor => {
    const width = rows.dims[1]!;
    const gathered = pool.allocate([all, width]);
    wire.gather(rows, gathered, totals, pass);
    const sorted = tape.allocate([all, width]);
    kernels.spreadRows(gathered.pointer, forth, 0, sorted.pointer, all, 1, width);
    pool.free(gathered);
    tape.free(rows);
    return sorted;
  };
  const summed = (rows: Tensor, pass: RowPass): Tensor => {
    const width = rows.dims[1]!;
    const parts = pool.allocate([all, width]);
    kernels.spreadRows(rows.pointer, back, 0, parts.pointer, all, 1, width);
    if (pass === "forward") tape.free(rows);
    const kept = tape.activation([ownRows!, width]);
    wire.reduce(parts, kept, totals, pass);
    pool.free(parts);
    return kept;
  };
  let result: Tensor | undefined;
  return {
    starts: expertStarts,
    toExperts: (x) => shared(own.toExperts(x), "forward"),
    toTokens: (rows) => {
      result = summed(rows, "forward");
      return own.toTokens(result);
    },
    toTokensGradient: (dy) => {
      const { rows, weights } = own.toTokensGradient(dy);
      tape.free(result!);
      return { rows: shared(rows, "backward"), weights };
    },
    toExpertsGradient: (rows) => {
      const parts = summed(rows, "backward");
      const dx = own.toExpertsGradient(parts);
      tape.free(parts);
      return dx;
    },
  };
}
