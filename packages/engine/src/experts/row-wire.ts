/**
 * Rows of tokens between the ranks of a group, as they are or in fewer bits: rounded once where they
 * leave, and summed in float32 where they arrive (MegaScale-MoE, EuroSys 2026, section 5).
 */
import type { Elements, Work } from "@trireme/collectives";
import type { LayerGroup } from "../layout/recorded-group.ts";
import type { Tape } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import { type RowFormat, type RowPass, type RowPrecision, rowFormat } from "./row-format.ts";

/** A collective call, with the elements of each rank's part. */
type Call = (
  from: Elements,
  sends: readonly number[],
  to: Elements,
  receives: readonly number[],
) => Work;

export class RowWire {
  readonly group: LayerGroup;
  readonly #tape: Tape;
  readonly #format: RowFormat | undefined;

  constructor(tape: Tape, group: LayerGroup, precision: RowPrecision) {
    this.group = group;
    this.#tape = tape;
    this.#format = rowFormat(tape.pool.memory, tape.kernels, precision);
  }

  /** Part r of `rows`, `sends[r]` of them, to rank r; from which come `receives[r]`, to `into`. */
  exchange(
    rows: Tensor,
    sends: readonly number[],
    into: Tensor,
    receives: readonly number[],
    pass: RowPass,
  ): void {
    this.#transfer(rows, sends, into, receives, pass, (from, out, to, counts) =>
      this.group.allToAllV(from, { counts: out }, to, { counts }),
    );
  }

  /** All ranks' rows in order of rank, `counts[r]` of rank r, to `into`. */
  gather(rows: Tensor, into: Tensor, counts: readonly number[], pass: RowPass): void {
    this.#transfer(rows, rows.dims.slice(0, 1), into, counts, pass, (from, _, to, parts) =>
      this.group.allGatherV(from, to, { counts: parts }),
    );
  }

  /** Of the ranks' rows, `counts[r]` for rank r, the sum over the ranks of this one's, to `into`. */
  reduce(rows: Tensor, into: Tensor, counts: readonly number[], pass: RowPass): void {
    const { pool, kernels } = this.#tape;
    const { rank, ranks } = this.group;
    const width = rows.dims[1]!;
    if (this.#format === undefined) {
      const lengths = counts.map((count) => count * width);
      const [from, to] = [view(pool.memory, rows), view(pool.memory, into)];
      this.group.reduceScatterV(from, to, lengths).wait();
      return;
    }
    const own = counts[rank]!;
    const parts = pool.allocate([own * ranks, width]);
    this.exchange(
      rows,
      counts,
      parts,
      counts.map(() => own),
      pass,
    );
    // In the order of rank: the same bits whichever comes first.
    kernels.copy(parts.pointer, into.pointer, into.size);
    for (let r = 1; r < ranks; r++) {
      kernels.accumulate(parts.pointer + r * into.size * 4, into.pointer, into.size);
    }
    pool.free(parts);
  }

  #transfer(
    rows: Tensor,
    sends: readonly number[],
    into: Tensor,
    receives: readonly number[],
    pass: RowPass,
    call: Call,
  ): void {
    const { pool } = this.#tape;
    const width = rows.dims[1]!;
    const format = this.#format;
    const units = (count: number): number => format?.units(count, width, pass) ?? count * width;
    const [leaving, coming] = [sends.map(units), receives.map(units)];
    if (format === undefined) {
      call(view(pool.memory, rows), leaving, view(pool.memory, into), coming).wait();
      return;
    }
    const [out, arrived] = [sum(leaving), sum(coming)];
    const { unitBytes } = format;
    const from = pool.allocateBytes(out * unitBytes);
    const to = pool.allocateBytes(arrived * unitBytes);
    eachPart(sends, leaving, (row, at, count) => {
      const first = rows.pointer + row * width * 4;
      format.encode(first, from + at * unitBytes, count, width, pass);
    });
    call(format.elements(from, out), leaving, format.elements(to, arrived), coming).wait();
    eachPart(receives, coming, (row, at, count) => {
      const first = into.pointer + row * width * 4;
      format.decode(to + at * unitBytes, first, count, width, pass);
    });
    pool.freeBytes(from, out * unitBytes);
    pool.freeBytes(to, arrived * unitBytes);
  }
}

/** Each part that is not empty: its first row, the element at which it begins, and its rows. */
function eachPart(
  counts: readonly number[],
  units: readonly number[],
  visit: (row: number, at: number, count: number) => void,
): void {
  let [row, at] = [0, 0];
  counts.forEach((count, i) => {
    if (count > 0) visit(row, at, count);
    row += count;
    at += units[i]!;
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
