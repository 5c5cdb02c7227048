import { addTo } from "../tape/add-gradient.ts";
import { lendValues } from "../tape/lend-values.ts";
import type { Range } from "../memory/slice.ts";
import type { Parameter, Tape, Variable } from "../tape/tape.ts";
import { gradientOf } from "../tape/tape.ts";

/** Learned positions [context, width], and what a rank that shares the embedding does with them. */
export interface Positions {
  readonly table: Parameter;
  /** Adds them to its rows: one rank of those whose rows are summed. */
  readonly adds: boolean;
  /** Takes their gradient: every rank that keeps it, or one where gradients are summed. */
  readonly learns: boolean;
}

/**
 * Rows of `table` [vocab, width] by token, plus positions by place in the sample, if given: to
 * [batch·tokens, width], where each sample has the tokens at `pieces`. `tokens` points to as many
 * i32; one below 0 is in another rank's part of the table.
 */
export function embedding(
  tape: Tape,
  tokens: number,
  batch: number,
  pieces: readonly Range[],
  table: Parameter,
  positions?: Positions,
): Variable {
  const { kernels } = tape;
  const width = table.dims[1]!;
  const y = tape.variable([batch * pieces.reduce((sum, { count }) => sum + count, 0), width]);
  /** Calls with each run of neighbouring tokens: their count, first position and first row. */
  const each = (visit: (count: number, start: number, row: number) => void): void => {
    let row = 0;
    for (let sample = 0; sample < batch; sample++) {
      for (const { start, count } of pieces) {
        visit(count, start, row);
        row += count;
      }
    }
  };
  const placed = (places: number, start: number): number =>
    places === 0 ? 0 : places + start * width * 4;

  const lendPlaces = (use: (places: number) => void): void => {
    if (positions?.adds === true) lendValues(tape.pool, positions.table, use);
    else use(0);
  };
  const total = y.value.dims[0]!;
  const used = { table, tokens, count: total };
  lendRowValues(tape, used, (own, rows) => {
    lendPlaces((places) => {
      each((count, start, row) => {
        const [ids, at] = [own + row * 4, y.value.pointer + row * width * 4];
        kernels.embeddingForward(ids, placed(places, start), rows, at, 1, count, width);
      });
    });
  });
  tape.record({
    weight: () => {
      if (table.frozen === true) return;
      const dy = gradientOf(y).pointer;
      lendRowGradients(tape, used, (own, drows) => {
        const add = (dplaces: number): void => {
          each((count, start, row) => {
            const [ids, at] = [own + row * 4, dy + row * width * 4];
            kernels.embeddingBackward(ids, at, drows, placed(dplaces, start), 1, count, width);
          });
        };
        if (positions?.learns === true) addTo(tape, positions.table, add);
        else add(0);
      });
    },
    spent: () => [y.value],
    kept: () => [y.gradient],
  });
  return y;
}

/** Rows of a table: those of `count` tokens, at this place. */
interface UsedRows {
  readonly table: Parameter;
  readonly tokens: number;
  readonly count: number;
}

/** Given where ids and rows of a table in float32 are. */
type UseRows = (ids: number, rows: number) => void;

/** Lends the values of a table in float32: where they lie, or the rows of the tokens alone. */
function lendRowValues(tape: Tape, used: UsedRows, use: UseRows): void {
  const { table, tokens } = used;
  const unpackRows = table.packed?.unpackRows;
  if (unpackRows === undefined) {
    lendValues(tape.pool, table, (rows) => use(tokens, rows));
    return;
  }
  withTokenRows(tape, used, (ids, rows, each) => {
    each((token, row) => unpackRows(row, token, 1));
    use(ids, rows);
  });
}

/** Lends the gradients of a table in float32 likewise. */
function lendRowGradients(tape: Tape, used: UsedRows, use: UseRows): void {
  const { table, tokens } = used;
  const { gradient } = table;
  const { pointer } = gradient;
  if (gradient.each === 4) {
    use(tokens, pointer);
    return;
  }
  const { kernels } = tape;
  const width = table.dims[1]!;
  withTokenRows(tape, used, (ids, rows, each) => {
    each((token, row) => kernels.fromBf16(pointer + token * width * 2, row, width));
    use(ids, rows);
    each((token, row) => kernels.toBf16(row, pointer + token * width * 2, width));
  });
}

/**
 * Lends room for a row of each token that is here, `ids` by which the rows are those of the tokens, and a
 * way to visit each token and its row.
 */
function withTokenRows(
  { pool }: Tape,
  { table, tokens, count }: UsedRows,
  use: (
    ids: number,
    rows: number,
    each: (visit: (token: number, row: number) => void) => void,
  ) => void,
): void {
  const width = table.dims[1]!;
  const places = new Map<number, number>();
  const ids = pool.allocate([count]);
  const { buffer } = pool.memory;
  const own = new Int32Array(buffer, ids.pointer, count);
  new Int32Array(buffer, tokens, count).forEach((token, i) => {
    if (token >= 0 && !places.has(token)) places.set(token, places.size);
    own[i] = token < 0 ? token : places.get(token)!;
  });
  const rows = pool.allocate([places.size, width]);
  use(ids.pointer, rows.pointer, (visit) => {
    for (const [token, place] of places) visit(token, rows.pointer + place * width * 4);
  });
  pool.free(rows);
  pool.free(ids);
}
