/**
 * Schedules as CSV in torch's form: a row for each rank, a cell for each action or time slot; an
 * empty cell is an idle slot. Both of torch's dialects, compute only and with communication, are
 * the same file format; what a cell may hold is the action grammar.
 */
import { TriremeError } from "@trireme/core";
import { kindCode, parseActions, printActions } from "./action.ts";
import { ScheduleBuilder } from "./schedule-builder.ts";
import { type Schedule, actionAt } from "./schedule.ts";

/** The schedule as CSV: cells stand in their time slots where the schedule has slots. */
export function printSchedule(s: Schedule): string {
  const lines: string[] = [];
  for (let r = 0; r < s.ranks; r++) {
    const cells: string[] = [];
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      if (s.slot !== undefined) while (cells.length < s.slot[i]!) cells.push("");
      const pair = s.overlap[i] === 1;
      cells.push(printActions(pair ? [actionAt(s, i), actionAt(s, i + 1)] : [actionAt(s, i)]));
      if (pair) i++;
    }
    lines.push(cells.join(","));
  }
  return `${lines.join("\n")}\n`;
}

export interface ParseScheduleOptions {
  readonly name?: string;
  /** Microbatches of the step; the largest in the text plus 1 when left out. */
  readonly microbatches?: number;
  /** The rank of each stage; where a stage first appears when left out. */
  readonly stageRank?: readonly number[];
  /** 2 for DualPipe's two directions. */
  readonly directions?: 1 | 2;
  /** True: cells are time slots also where none is empty. */
  readonly slots?: boolean;
}

/**
 * Reads a schedule from CSV; the inverse of `printSchedule`, including time slots. What the rows
 * say is taken as it stands: `validate` judges it.
 * @throws TriremeError `ACTION` naming the cell that is not an action, `CSV` when a row has none.
 */
export function parseSchedule(text: string, o: ParseScheduleOptions = {}): Schedule {
  const lines = text.replace(/\r/g, "").replace(/\n$/, "").split("\n");
  const rows = lines.map((line, r) =>
    line.split(",").map((cell, column) => {
      try {
        return parseActions(cell);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new TriremeError("ACTION", `row ${r + 1}, cell ${column + 1}: ${reason}`, {
          cause: error,
        });
      }
    }),
  );
  const places = new Map<number, number>();
  let microbatches = 0;
  let last = -1;
  let backward = false;
  let idle = false;
  for (const [r, cells] of rows.entries()) {
    const used = cells.findLastIndex((cell) => cell.length > 0);
    for (const [c, cell] of cells.entries()) {
      if (cell.length === 0 && c < used) idle = true;
      for (const a of cell) {
        if (!places.has(a.stage)) places.set(a.stage, r);
        last = Math.max(last, a.stage);
        microbatches = Math.max(microbatches, a.microbatch + 1);
        if (kindCode[a.kind] !== kindCode.F && a.kind.length === 1) backward = true;
      }
    }
  }
  if (places.size === 0) throw new TriremeError("CSV", "the text holds no action, such as 0F0");
  const empty = rows.findIndex((cells) => cells.every((cell) => cell.length === 0));
  if (empty >= 0) {
    throw new TriremeError(
      "CSV",
      `row ${empty + 1} holds no action, such as 0F0; every rank has a row with some`,
    );
  }
  if (o.microbatches !== undefined && !(Number.isInteger(o.microbatches) && o.microbatches >= 1)) {
    throw new TriremeError(
      "CSV",
      `microbatches = ${o.microbatches} is not an integer of 1 or more`,
    );
  }
  const stages = o.stageRank?.length ?? last + 1;
  if (stages > 2 ** 20)
    throw new TriremeError("CSV", `stage ${stages - 1} is beyond the 2^20 stages allowed`);
  if (stages * (o.microbatches ?? microbatches) > 2 ** 27) {
    throw new TriremeError(
      "CSV",
      `${stages} stages x ${o.microbatches ?? microbatches} microbatches are beyond the 2^27 pairs allowed`,
    );
  }
  const stageRank = o.stageRank ?? Array.from({ length: stages }, (_, s) => places.get(s) ?? -1);
  const builder = new ScheduleBuilder(
    {
      name: o.name ?? "csv",
      ranks: rows.length,
      chunks: Math.ceil(stages / rows.length),
      microbatches: o.microbatches ?? microbatches,
      stages,
      stageRank,
      directions: o.directions ?? 1,
      forwardOnly: !backward,
    },
    1024,
    idle || o.slots === true,
  );
  for (const cells of rows) {
    for (const [slot, cell] of cells.entries()) {
      for (const a of cell) {
        const half = a.overlap === undefined ? 0 : a.overlap === "first" ? 1 : 2;
        builder.add(kindCode[a.kind], a.stage, a.microbatch, half, slot);
      }
    }
    builder.endRow();
  }
  return builder.finish();
}
