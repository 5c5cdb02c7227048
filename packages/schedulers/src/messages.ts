/**
 * The communication of a lowered schedule, checked: each message is sent once after its data exists,
 * received once before its use, and the messages from one rank to another are received in the order
 * in which they are sent, so that a transport without tags (NCCL, Gloo, pipes) delivers each to its
 * user, also between two ranks that are neighbours both ways.
 */
import { TriremeError } from "@trireme/core";
import { kindCode, printAction } from "./action.ts";
import { type Schedule, actionAt, stagesPerDirection } from "./schedule.ts";

/** True when the schedule holds sends and receives. */
export function isLowered(s: Schedule): boolean {
  const { SEND_F, RECV_F, SEND_B, RECV_B } = kindCode;
  return [SEND_F, RECV_F, SEND_B, RECV_B].some((k) => s.kind.includes(k));
}

/** Throws TriremeError `LOWERED` where a schedule has sends or receives: they are added once. */
export function refuseLowered(s: Schedule): void {
  if (isLowered(s)) {
    throw new TriremeError("LOWERED", `${s.name} already has sends and receives; lower it once`);
  }
}

/** Reports every message that is missing, early, late, doubled or out of order. */
export function checkMessages(s: Schedule, report: (rank: number, message: string) => void): void {
  if (!isLowered(s)) return;
  const { microbatches: M, stages, stageRank, kind, stage, microbatch } = s;
  const chain = stagesPerDirection(s);
  const name = (i: number): string => printAction(actionAt(s, i));
  // By receiving (stage, microbatch), activations even and gradients odd: place + 1 of each half.
  const sent = new Int32Array(2 * stages * M);
  const received = new Int32Array(2 * stages * M);
  const done = new Uint8Array(2 * stages * M);
  const crosses = (st: number, to: number): boolean =>
    to >= 0 &&
    to < stages &&
    Math.floor(st / chain) === Math.floor(to / chain) &&
    stageRank[st] !== stageRank[to];
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const [k, st, m] = [kind[i]!, stage[i]!, microbatch[i]!];
      if (m < 0) continue;
      const key = 2 * (st * M + m);
      switch (k) {
        case kindCode.F:
        case kindCode.B:
        case kindCode.I: {
          const half = k === kindCode.F ? 0 : 1;
          if (crosses(st, half === 0 ? st - 1 : st + 1) && received[key + half] === 0) {
            report(
              r,
              `${name(i)} on rank ${r} before ${st}${half === 0 ? "RECV_F" : "RECV_B"}${m}`,
            );
          }
          done[key + half] = 1;
          break;
        }
        case kindCode.SEND_F:
        case kindCode.SEND_B: {
          const half = k === kindCode.SEND_F ? 0 : 1;
          const to = half === 0 ? st + 1 : st - 1;
          if (!crosses(st, to)) {
            report(r, `${name(i)} on rank ${r} has no other rank to send to`);
            break;
          }
          if (done[key + half] === 0) report(r, `${name(i)} on rank ${r} before its data exists`);
          const place = 2 * (to * M + m) + half;
          if (sent[place] !== 0) report(r, `${name(i)} on rank ${r} twice`);
          sent[place] = i + 1;
          break;
        }
        case kindCode.RECV_F:
        case kindCode.RECV_B: {
          const half = k === kindCode.RECV_F ? 0 : 1;
          if (received[key + half] !== 0) report(r, `${name(i)} on rank ${r} twice`);
          received[key + half] = i + 1;
          break;
        }
        default:
          break;
      }
    }
  }
  for (let place = 0; place < sent.length; place++) {
    if ((sent[place] === 0) === (received[place] === 0)) continue;
    const at = (sent[place] || received[place])! - 1;
    const rank = s.offsets.findIndex((end) => end > at) - 1;
    report(
      rank,
      `${name(at)} on rank ${rank} has no ${sent[place] === 0 ? "send" : "receive"} on the other side`,
    );
  }
  checkOrder(s, sent, received, report);
}

/** Messages of each ordered pair of ranks are received in the order of their sends. */
function checkOrder(
  s: Schedule,
  sent: Int32Array,
  received: Int32Array,
  report: (rank: number, message: string) => void,
): void {
  const { microbatches: M, stageRank } = s;
  const lastSend = new Map<number, number>();
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const k = s.kind[i]!;
      if (k !== kindCode.RECV_F && k !== kindCode.RECV_B) continue;
      const half = k === kindCode.RECV_F ? 0 : 1;
      const place = 2 * (s.stage[i]! * M + s.microbatch[i]!) + half;
      if (received[place] !== i + 1 || sent[place] === 0) continue;
      const from = stageRank[s.stage[i]! + (half === 0 ? -1 : 1)]!;
      const pair = from * s.ranks + r;
      if (sent[place]! < (lastSend.get(pair) ?? 0)) {
        report(
          r,
          `${printAction(actionAt(s, i))} on rank ${r} is received after a message that rank ${from} sends later`,
        );
      }
      lastSend.set(pair, sent[place]!);
    }
  }
}

/** Reports computation on a stage whose weights the schedule gathers, but has not at that point. */
export function checkWeights(s: Schedule, report: (rank: number, message: string) => void): void {
  if (!s.kind.includes(kindCode.UNSHARD)) return;
  const held = new Uint8Array(s.stages);
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const [k, st] = [s.kind[i]!, s.stage[i]!];
      if (k === kindCode.UNSHARD) held[st] = 1;
      else if (k === kindCode.RESHARD) held[st] = 0;
      else if (k <= kindCode.B && held[st] === 0) {
        report(
          r,
          `${printAction(actionAt(s, i))} on rank ${r} while the weights of stage ${st} are sharded`,
        );
      }
    }
  }
}

/** Reports gradients that are reduced twice, or before a backward that adds to them. */
export function checkReductions(
  s: Schedule,
  report: (rank: number, message: string) => void,
): void {
  if (!s.kind.includes(kindCode.REDUCE_GRAD)) return;
  const reduced = new Uint8Array(s.stages);
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const [k, st] = [s.kind[i]!, s.stage[i]!];
      const name = (): string => `${printAction(actionAt(s, i))} on rank ${r}`;
      if (k === kindCode.REDUCE_GRAD) {
        if (reduced[st] === 1) report(r, `${name()} runs twice`);
        reduced[st] = 1;
      } else if ((k === kindCode.B || k === kindCode.W) && reduced[st] === 1) {
        report(r, `${name()} after ${st}REDUCE_GRAD, which would miss its gradient`);
      }
    }
  }
}
