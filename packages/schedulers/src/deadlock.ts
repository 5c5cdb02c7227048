/**
 * Explains why a schedule stopped: from a stopped rank, follows "waits for X, which stands behind Y
 * on rank q" from rank to rank until a rank repeats (a cycle) or X is nowhere in the schedule.
 */
import { kindCode, printAction } from "./action.ts";
import { type Schedule, actionAt, stagesPerDirection } from "./schedule.ts";

interface Wait {
  readonly rank: number;
  /** The action that cannot run. */
  readonly action: string;
  /** What it waits for; every one of `kinds` will do. */
  readonly stage: number;
  readonly microbatch: number;
  readonly kinds: readonly number[];
}

/** One step of the chain of waits, for a stopped schedule; empty when it is complete. */
export interface Deadlock {
  /** Actions that wait for each other, each for the next; the last waits for the first. */
  readonly cycle: readonly string[];
  readonly message: string;
  readonly rank: number;
}

/** The cycle that stops a schedule whose ranks stand at `positions`. */
export function findDeadlock(s: Schedule, positions: Int32Array): Deadlock | undefined {
  let rank = 0;
  while (rank < s.ranks && positions[rank]! >= s.offsets[rank + 1]!) rank++;
  if (rank === s.ranks) return undefined;
  const seen = new Map<number, number>();
  const heads: string[] = [];
  const links: string[] = [];
  for (;;) {
    const at = seen.get(rank);
    if (at !== undefined) {
      const cycle = heads.slice(at);
      return { cycle, rank, message: `deadlock: ${links.slice(at).join("; ")}` };
    }
    seen.set(rank, heads.length);
    const wait = waitOf(s, positions, rank);
    if (wait === undefined) {
      const action = printAction(actionAt(s, positions[rank]!));
      const message = `${action} on rank ${rank} is not of the schedule's stages and microbatches`;
      return { cycle: [action], rank, message };
    }
    heads.push(wait.action);
    const place = findAction(s, wait);
    const wanted = printAction({
      stage: wait.stage,
      kind: actionAt(s, place ?? positions[rank]!).kind,
      microbatch: wait.microbatch,
    });
    if (place === undefined) {
      const names = wait.kinds.map((k) => `${wait.stage}${kindName(k)}${wait.microbatch}`);
      return {
        cycle: heads.slice(-1),
        rank,
        message: `deadlock: ${wait.action} on rank ${rank} waits for ${names.join(" or ")}, which no rank runs`,
      };
    }
    const next = rankOf(s, place);
    const head = printAction(actionAt(s, positions[next]!));
    links.push(
      `${wait.action} on rank ${rank} waits for ${wanted}` +
        (head === wanted ? ` on rank ${next}` : ` behind ${head} on rank ${next}`),
    );
    rank = next;
  }
}

/** The message of `findDeadlock`. */
export function describeDeadlock(s: Schedule, positions: Int32Array): string {
  return findDeadlock(s, positions)?.message ?? "every action ran";
}

function kindName(kind: number): string {
  return Object.entries(kindCode).find(([, code]) => code === kind)?.[0] ?? "?";
}

/** What the head action of a stopped rank waits for; undefined when nothing is open. */
function waitOf(s: Schedule, positions: Int32Array, rank: number): Wait | undefined {
  const i = positions[rank]!;
  const chain = stagesPerDirection(s);
  const ran = (place: number): boolean => place < positions[rankOf(s, place)]!;
  const needs = (j: number): Omit<Wait, "rank" | "action">[] => {
    const [stage, microbatch] = [s.stage[j]!, s.microbatch[j]!];
    const backwards = [kindCode.B, kindCode.I];
    switch (s.kind[j]!) {
      case kindCode.F:
        return stage % chain === 0
          ? []
          : [input(stage - 1, microbatch, [kindCode.F], kindCode.SEND_F, rank)];
      case kindCode.B:
      case kindCode.I:
        return [
          { stage, microbatch, kinds: [kindCode.F] },
          ...(stage % chain === chain - 1
            ? []
            : [input(stage + 1, microbatch, backwards, kindCode.SEND_B, rank)]),
        ];
      case kindCode.W:
      case kindCode.SEND_B:
        return [{ stage, microbatch, kinds: backwards }];
      case kindCode.SEND_F:
        return [{ stage, microbatch, kinds: [kindCode.F] }];
      case kindCode.RECV_F:
        return [{ stage: stage - 1, microbatch, kinds: [kindCode.SEND_F] }];
      case kindCode.RECV_B:
        return [{ stage: stage + 1, microbatch, kinds: [kindCode.SEND_B] }];
      default:
        return [];
    }
  };
  const sends = s.kind.includes(kindCode.SEND_F) || s.kind.includes(kindCode.SEND_B);
  function input(
    stage: number,
    microbatch: number,
    kinds: readonly number[],
    send: number,
    at: number,
  ): Omit<Wait, "rank" | "action"> {
    return { stage, microbatch, kinds: sends && s.stageRank[stage] !== at ? [send] : kinds };
  }
  const all = [...needs(i), ...(s.overlap[i] === 1 ? needs(i + 1) : [])];
  const open = all.find((need) => {
    const place = findAction(s, need);
    return place === undefined || !ran(place);
  });
  const action = printAction(actionAt(s, i));
  return open === undefined ? undefined : { rank, action, ...open };
}

/** The place of an action in the columns. A search of one row or all: only for error messages. */
function findAction(
  s: Schedule,
  want: { readonly stage: number; readonly microbatch: number; readonly kinds: readonly number[] },
): number | undefined {
  for (let i = 0; i < s.kind.length; i++) {
    if (
      s.stage[i] === want.stage &&
      s.microbatch[i] === want.microbatch &&
      want.kinds.includes(s.kind[i]!)
    ) {
      return i;
    }
  }
  return undefined;
}

function rankOf(s: Schedule, place: number): number {
  let rank = 0;
  while (s.offsets[rank + 1]! <= place) rank++;
  return rank;
}
