/**
 * V-Half and V-Min (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024, §3): a
 * building block, the six actions of one microbatch on the two stages that each rank holds in a V,
 * repeats every six slots; how long the block keeps an activation sets the memory. V-Half holds
 * about half of 1F1B's activations, V-Min about a third, for a bubble that does not grow with the
 * microbatches.
 *
 * The repeated block is then compacted slot by slot: a rank that has nothing to do takes the next
 * action of its row that can run and does not raise its peak memory, and past its last forward it
 * takes gradients of inputs before those of weights.
 */
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { ScheduleBuilder, checkCounts } from "./schedule-builder.ts";
import { type Schedule, vPlacement } from "./schedule.ts";

const { F, I, W } = kindCode;
const period = 6;

/** Half of 1F1B's activations; two stages per rank. */
export function vHalf(o: SingleStageOptions): Schedule {
  return compacted("v-half", o, (r) => vHalfBlock(o.ranks, r));
}

/** A third of 1F1B's activations; two stages per rank. */
export function vMin(o: SingleStageOptions): Schedule {
  return compacted("v-min", o, (r) => vMinBlock(o.ranks, r));
}

/** Slots of F and I on rank r: F descending the V, F ascending, I descending, I ascending. */
export function vHalfBlock(ranks: number, r: number): readonly [number, number, number, number] {
  const shift = ranks % 2 === 0 ? 3 : 0;
  return [2 * r, 3 * ranks - r - 2, 3 * ranks + shift + 2 * r - 1, 6 * ranks + shift - r - 2];
}

/** As `vHalfBlock`, for V-Min. */
export function vMinBlock(ranks: number, r: number): readonly [number, number, number, number] {
  const shift = ranks % 3 === 0 ? 2 : 0;
  return [r, 2 * ranks - r - 1, 2 * ranks + shift + r, 4 * ranks + shift - r - 1];
}

/** A rank's row before compaction: what it runs, in order, and the next entry that is left. */
interface Row {
  readonly kind: Uint8Array;
  readonly chunk: Uint8Array;
  readonly microbatch: Int32Array;
  /** Linked list of the entries that wait; entry n is the end. */
  readonly next: Int32Array;
  first: number;
  forwardsLeft: number;
  held: number;
}

function compacted(
  name: string,
  o: SingleStageOptions,
  block: (rank: number) => readonly [number, number, number, number],
): Schedule {
  const { ranks, microbatches: M } = o;
  checkCounts(name, { ranks, microbatches: M });
  const stages = 2 * ranks;
  const stageRank = vPlacement(ranks, stages);
  const builder = new ScheduleBuilder(
    {
      name,
      ranks,
      chunks: 2,
      microbatches: M,
      stages,
      stageRank,
      directions: 1,
      forwardOnly: false,
    },
    3 * stages * M,
  );
  const rows = Array.from({ length: ranks }, (_, r) => repeated(block(r), M));
  const limit = Math.max(...rows.map(peakOf));
  // Slot after which F (even) or I (odd) of a stage and microbatch is done; 0: not yet.
  const done = new Int32Array(2 * stages * M);
  const picked: number[][] = rows.map(() => []);
  const reach = period * (ranks + 1);
  const stageOf = (r: number, chunk: number): number => (chunk === 0 ? r : stages - 1 - r);
  const isDone = (stage: number, m: number, kind: number, slot: number): boolean => {
    const end = done[2 * (stage * M + m) + kind]!;
    return end !== 0 && end <= slot;
  };
  const canRun = (row: Row, r: number, i: number, slot: number): boolean => {
    const stage = stageOf(r, row.chunk[i]!);
    const m = row.microbatch[i]!;
    switch (row.kind[i]!) {
      case F:
        return stage === 0 || isDone(stage - 1, m, F, slot);
      case I:
        return isDone(stage, m, F, slot) && (stage === stages - 1 || isDone(stage + 1, m, I, slot));
      default:
        return isDone(stage, m, I, slot);
    }
  };
  for (let slot = 0, left = 3 * stages * M; left > 0; slot++) {
    for (let r = 0; r < ranks; r++) {
      const row = rows[r]!;
      const entry = choose(row, limit, reach, (i) => canRun(row, r, i, slot));
      if (entry < 0) continue;
      left--;
      picked[r]!.push(entry);
      const kind = row.kind[entry]!;
      if (kind === F) {
        row.held++;
        row.forwardsLeft--;
      } else if (kind === W) {
        row.held--;
      }
      if (kind !== W)
        done[2 * (stageOf(r, row.chunk[entry]!) * M + row.microbatch[entry]!) + kind] = slot + 1;
    }
  }
  for (let r = 0; r < ranks; r++) {
    const row = rows[r]!;
    for (const i of picked[r]!) {
      builder.add(row.kind[i]!, stageOf(r, row.chunk[i]!), row.microbatch[i]!);
    }
    builder.endRow();
  }
  return builder.finish();
}

/** The block of a rank repeated for all microbatches, in order of slots. W takes the next free slot. */
function repeated(slots: readonly [number, number, number, number], M: number): Row {
  const streams: { at: number; kind: number; chunk: number }[] = [
    { at: slots[0], kind: F, chunk: 0 },
    { at: slots[1], kind: F, chunk: 1 },
    { at: slots[2], kind: I, chunk: 1 },
    { at: slots[3], kind: I, chunk: 0 },
  ];
  for (const input of streams.slice(2)) {
    let at = input.at + 1;
    while (streams.some((s) => (s.at - at) % period === 0)) at++;
    streams.push({ at, kind: W, chunk: input.chunk });
  }
  const n = period * M;
  const row: Row = {
    kind: new Uint8Array(n),
    chunk: new Uint8Array(n),
    microbatch: new Int32Array(n),
    next: Int32Array.from({ length: n }, (_, i) => i + 1),
    first: 0,
    forwardsLeft: 2 * M,
    held: 0,
  };
  const byPhase = Array.from({ length: period }, (_, phase) =>
    streams.find((s) => s.at % period === phase),
  );
  for (let slot = 0, i = 0; i < n; slot++) {
    const stream = byPhase[slot % period];
    if (stream === undefined) continue;
    const m = (slot - stream.at) / period;
    if (m < 0 || m >= M) continue;
    row.kind[i] = stream.kind;
    row.chunk[i] = stream.chunk;
    row.microbatch[i++] = m;
  }
  return row;
}

function peakOf(row: Row): number {
  let held = 0;
  let peak = 0;
  for (const kind of row.kind) {
    if (kind === F) held++;
    else if (kind === W) held--;
    if (held > peak) peak = held;
  }
  return peak;
}

/** Takes the entry to run now out of the row; −1 when none can. */
function choose(row: Row, limit: number, reach: number, canRun: (i: number) => boolean): number {
  const n = row.kind.length;
  let held = row.held;
  let peak = held;
  let before = -1;
  let i = row.first;
  for (let steps = 0; i < n && steps < reach; steps++) {
    const kind = row.kind[i]!;
    // A forward taken early stays in memory while what it overtakes runs.
    if (canRun(i) && (kind !== F || peak < limit)) {
      if (kind === W && row.forwardsLeft === 0) {
        const input = findInput(row, i, before, reach, canRun);
        if (input !== undefined) [i, before] = input;
      }
      if (before < 0) row.first = row.next[i]!;
      else row.next[before] = row.next[i]!;
      return i;
    }
    if (kind === F) held++;
    else if (kind === W) held--;
    if (held > peak) peak = held;
    before = i;
    i = row.next[i]!;
  }
  return -1;
}

/** The next I that can run, from entry i on, and the entry before it. */
function findInput(
  row: Row,
  from: number,
  beforeFrom: number,
  reach: number,
  canRun: (i: number) => boolean,
): [number, number] | undefined {
  let before = beforeFrom;
  let i = from;
  for (let steps = 0; i < row.kind.length && steps < reach; steps++) {
    if (row.kind[i] === I && canRun(i)) return [i, before];
    before = i;
    i = row.next[i]!;
  }
  return undefined;
}
