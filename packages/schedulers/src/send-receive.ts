/**
 * Adds the sends and receives between stages on different ranks. A SEND follows the action that
 * makes its data; a RECV stands as late as it can, right before its user, except that messages from
 * one rank to another are received in the order of their sends, which moves some a little earlier.
 * Receiving in advance what a peer sent before adds no wait: had it not arrived, the later message
 * would not have either. So with sends that do not block the order is free of deadlocks, and at zero
 * transfer time the makespan does not change (front-loaded receives, as in pytorch#188833, cost
 * bubbles).
 */
import { kindCode } from "./action.ts";
import { refuseLowered } from "./messages.ts";
import { ScheduleBuilder } from "./schedule-builder.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";

/** Messages between two ranks in one direction, in order of their sends. */
interface Channels {
  /** Channel of the activations that stage s sends up, of the gradients it sends down; −1: none. */
  readonly up: Int32Array;
  readonly down: Int32Array;
  /** Messages of channel c are `offsets[c] .. offsets[c + 1] − 1` in `messages`. */
  readonly offsets: Int32Array;
  /** The receiver of each message: 2·(stage·M + microbatch), plus 1 for a gradient. */
  readonly messages: Int32Array;
  /** Where each receiver's message stands in `messages`; −1: it receives none. */
  readonly placeOf: Int32Array;
}

/**
 * A copy of the schedule with SEND_F, RECV_F, SEND_B and RECV_B. Linear in the number of actions.
 * @throws TriremeError `LOWERED` when the schedule already has sends or receives.
 */
export function addSendReceive(s: Schedule): Schedule {
  refuseLowered(s);
  const { microbatches: M, kind, stage, microbatch, overlap } = s;
  const { up, down, offsets, messages, placeOf } = channels(s);
  const next = offsets.slice(0, offsets.length - 1);
  const { slot: _, ...shape } = s;
  const builder = new ScheduleBuilder(shape, kind.length + 2 * messages.length);
  const receive = (channel: number, receiver: number): void => {
    if (channel < 0) return;
    const place = placeOf[receiver]!;
    for (; next[channel]! <= place; next[channel]!++) {
      const message = messages[next[channel]!]!;
      const half = message & 1;
      const key = (message - half) / 2;
      const m = key % M;
      builder.add(half === 0 ? kindCode.RECV_F : kindCode.RECV_B, (key - m) / M, m);
    }
  };
  const chain = stagesPerDirection(s);
  /** Receives the inputs of action i. */
  const before = (i: number): void => {
    const [k, st] = [kind[i]!, stage[i]!];
    const key = 2 * (st * M + microbatch[i]!);
    if (k === kindCode.F) {
      if (st % chain > 0) receive(up[st - 1]!, key);
    } else if (k === kindCode.B || k === kindCode.I) {
      if (st % chain < chain - 1) receive(down[st + 1]!, key + 1);
    }
  };
  const after = (i: number): void => {
    const [k, st] = [kind[i]!, stage[i]!];
    if (k === kindCode.F) {
      if (up[st]! >= 0) builder.add(kindCode.SEND_F, st, microbatch[i]!);
    } else if (k === kindCode.B || k === kindCode.I) {
      if (down[st]! >= 0) builder.add(kindCode.SEND_B, st, microbatch[i]!);
    }
  };
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      before(i);
      const pair = overlap[i] === 1;
      if (pair) before(i + 1);
      builder.add(kind[i]!, stage[i]!, microbatch[i]!, overlap[i]);
      if (pair) builder.add(kind[i + 1]!, stage[i + 1]!, microbatch[i + 1]!, 2);
      after(i);
      if (pair) after(++i);
    }
    builder.endRow();
  }
  return builder.finish();
}

function channels(s: Schedule): Channels {
  const { ranks, stages, stageRank, kind, stage, microbatch, microbatches: M } = s;
  const chain = stagesPerDirection(s);
  const up = new Int32Array(stages).fill(-1);
  const down = new Int32Array(stages).fill(-1);
  const ids = new Map<number, number>();
  const channel = (from: number, to: number): number => {
    const pair = stageRank[from]! * ranks + stageRank[to]!;
    let id = ids.get(pair);
    if (id === undefined) ids.set(pair, (id = ids.size));
    return id;
  };
  for (let st = 0; st < stages; st++) {
    if (st % chain === chain - 1 || stageRank[st] === stageRank[st + 1]) continue;
    up[st] = channel(st, st + 1);
    down[st + 1] = channel(st + 1, st);
  }
  const channelOf = (i: number): number => {
    const k = kind[i]!;
    if (k === kindCode.F) return up[stage[i]!]!;
    return k === kindCode.B || k === kindCode.I ? down[stage[i]!]! : -1;
  };
  const offsets = new Int32Array(ids.size + 1);
  for (let i = 0; i < kind.length; i++) {
    const c = channelOf(i);
    if (c >= 0) offsets[c + 1]!++;
  }
  for (let c = 0; c < ids.size; c++) offsets[c + 1]! += offsets[c]!;
  const fill = offsets.slice();
  const messages = new Int32Array(offsets[ids.size]!);
  const placeOf = new Int32Array(2 * stages * M).fill(-1);
  for (let i = 0; i < kind.length; i++) {
    const c = channelOf(i);
    if (c < 0) continue;
    const forward = kind[i] === kindCode.F;
    const receiver =
      2 * ((stage[i]! + (forward ? 1 : -1)) * M + microbatch[i]!) + (forward ? 0 : 1);
    placeOf[receiver] = fill[c]!;
    messages[fill[c]!++] = receiver;
  }
  return { up, down, offsets, messages, placeOf };
}
