/**
 * Sends and receives in torch's order (torch.distributed.pipelining, add_send_recv): the ranks take
 * turns, and the moment an action with an output runs, its SEND is appended to its rank and the RECV
 * to the peer's. Both halves of every message stand at the same place of one global order of all
 * actions, so the result runs to its end even where a send waits for its receive (no buffers): of
 * two ranks that exchange messages in the same slot one sends first and the other receives first.
 * The price is receives that come long before their use; where a receive holds up its rank, that
 * makes bubbles (pytorch#188833).
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import { describeDeadlock } from "./deadlock.ts";
import { refuseLowered } from "./messages.ts";
import { ScheduleBuilder } from "./schedule-builder.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";

/**
 * Adds early receives; time slots of the schedule, if any, delay its actions as in torch.
 * @throws TriremeError `LOWERED` when the schedule already has sends or receives.
 */
export function addEarlySendReceive(s: Schedule): Schedule {
  refuseLowered(s);
  const { ranks, stageRank, kind, stage, microbatch, overlap, offsets, slot } = s;
  const chain = stagesPerDirection(s);
  const M = s.microbatches;
  // Whether the input of F (even), of B or I (odd) of a stage and microbatch is on its rank.
  const there = new Uint8Array(2 * s.stages * M);
  const ranForward = new Uint8Array(s.stages * M);
  for (let st = 0; st < s.stages; st++) {
    for (let m = 0; m < M; m++) {
      if (st % chain === 0) there[2 * (st * M + m)] = 1;
      if (st % chain === chain - 1) there[2 * (st * M + m) + 1] = 1;
    }
  }
  const rows = Array.from({ length: ranks }, (): number[] => []);
  const positions = offsets.slice(0, ranks);
  // Empty slots that a rank still lets pass before its next action.
  const pauses = positions.map((at, r) => (at < offsets[r + 1]! ? (slot?.[at] ?? 0) : 0));
  const ready = (i: number): boolean => {
    const [k, key] = [kind[i]!, stage[i]! * M + microbatch[i]!];
    if (k === kindCode.F) return there[2 * key] === 1;
    if (k === kindCode.B || k === kindCode.I)
      return there[2 * key + 1] === 1 && ranForward[key] === 1;
    return true;
  };
  const send = (i: number): void => {
    const [k, st, m] = [kind[i]!, stage[i]!, microbatch[i]!];
    if (k === kindCode.F) ranForward[st * M + m] = 1;
    const step = k === kindCode.F ? 1 : k === kindCode.B || k === kindCode.I ? -1 : 0;
    const edge = step === 1 ? chain - 1 : 0;
    if (step === 0 || st % chain === edge) return;
    const half = step === 1 ? 0 : 1;
    there[2 * ((st + step) * M + m) + half] = 1;
    const [from, to] = [stageRank[st]!, stageRank[st + step]!];
    if (from === to) return;
    rows[from]!.push(half === 0 ? kindCode.SEND_F : kindCode.SEND_B, st, m, 0);
    rows[to]!.push(half === 0 ? kindCode.RECV_F : kindCode.RECV_B, st + step, m, 0);
  };
  for (let left = kind.length; left > 0;) {
    let progress = false;
    for (let r = 0; r < ranks; r++) {
      const i = positions[r]!;
      const end = offsets[r + 1]!;
      if (i >= end) continue;
      if (pauses[r]! > 0) {
        pauses[r]!--;
        progress = true;
        continue;
      }
      const count = overlap[i] === 1 ? 2 : 1;
      if (!ready(i) || (count === 2 && !ready(i + 1))) continue;
      for (let j = i; j < i + count; j++)
        rows[r]!.push(kind[j]!, stage[j]!, microbatch[j]!, overlap[j]!);
      for (let j = i; j < i + count; j++) send(j);
      positions[r] = i + count;
      left -= count;
      progress = true;
      if (slot !== undefined && i + count < end) pauses[r] = slot[i + count]! - slot[i]! - 1;
    }
    if (!progress)
      throw new TriremeError("DEADLOCK", `${s.name}: ${describeDeadlock(s, positions)}`);
  }
  const { slot: _, ...shape } = s;
  const builder = new ScheduleBuilder(
    shape,
    rows.reduce((n, row) => n + row.length / 4, 0),
  );
  for (const row of rows) {
    for (let i = 0; i < row.length; i += 4) {
      builder.add(row[i]!, row[i + 1]!, row[i + 2]!, row[i + 3]);
    }
    builder.endRow();
  }
  return builder.finish();
}
