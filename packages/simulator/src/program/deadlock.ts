/** Why a program came to a stop before its end: who waits for whom, and where that goes round. */
import { TriremeError } from "@trireme/core";
import { type Instructions, argumentAt, codeAt, opcode } from "./instructions.ts";
import type { Program } from "./program.ts";

/** Where a stopped program stands. */
export interface Standstill {
  /** Instruction of its list that each rank stands at; the list's end when the rank is through. */
  readonly position: Float64Array;
  /** Message or collective that each rank waits for; -1: none. */
  readonly waitsMessage: Int32Array;
  readonly waitsCollective: Int32Array;
  /** Number of a rank in the message. */
  readonly nameOf: (rank: number) => number;
}

/**
 * Nothing where every rank is through.
 * @throws TriremeError `DEADLOCK` with the cycle of ranks that wait for each other, or without one the
 * first wait that never ends.
 */
export function requireFinished(program: Program, code: Instructions, at: Standstill): void {
  if (at.position.every((position, rank) => position >= endOf(code, rank))) return;
  throw explainDeadlock(program, code, at);
}

function explainDeadlock(program: Program, code: Instructions, at: Standstill): TriremeError {
  const { from, receive } = program.messages();
  const { group, label } = program.collectives();
  const stuck = (rank: number): boolean => at.position[rank]! < endOf(code, rank);
  const first = at.position.findIndex((_, rank) => stuck(rank));
  const what = (rank: number): string => {
    const message = at.waitsMessage[rank]!;
    if (message >= 0) {
      const { action } = program.labels[receive[message]!]!;
      return `rank ${at.nameOf(rank)} waits for ${action} from rank ${at.nameOf(from[message]!)}`;
    }
    const collective = at.waitsCollective[rank]!;
    const { action } = program.labels[label[collective]!]!;
    return `rank ${at.nameOf(rank)} waits for ${action}`;
  };
  /** The rank that `rank` waits for: the sender, or a member that has not entered or is held up. */
  const blocker = (rank: number): number => {
    const message = at.waitsMessage[rank]!;
    if (message >= 0) return from[message]!;
    const collective = at.waitsCollective[rank]!;
    const members = program.groups[group[collective]!]!;
    const missing = members.find((m) => m !== rank && !entered(code, at, m, collective));
    return missing ?? members.find((m) => m !== rank && stuck(m)) ?? -1;
  };
  const order: number[] = [];
  let rank = first;
  while (rank >= 0 && stuck(rank) && !order.includes(rank)) {
    order.push(rank);
    rank = blocker(rank);
  }
  const cycle = rank >= 0 && stuck(rank) ? order.slice(order.indexOf(rank)) : [];
  if (cycle.length > 1) {
    const shown = cycle.slice(0, 8).map(what);
    if (cycle.length > 8) shown.push(`${cycle.length - 8} ranks more`);
    return new TriremeError(
      "DEADLOCK",
      `${shown.join(", ")}: each waits for the next, in a circle`,
    );
  }
  const last = order.at(-1)!;
  const collective = at.waitsCollective[last]!;
  const rest =
    at.waitsMessage[last]! >= 0
      ? "which never sends it"
      : `which never starts on all of its ${program.groups[group[collective]!]!.length} ranks`;
  return new TriremeError("DEADLOCK", `${what(last)}, ${rest}`);
}

function endOf({ offsets, listOf }: Instructions, rank: number): number {
  return offsets[listOf[rank]! + 1]!;
}

function entered(code: Instructions, at: Standstill, rank: number, collective: number): boolean {
  const last = Math.min(at.position[rank]!, endOf(code, rank) - 1);
  for (let i = code.offsets[code.listOf[rank]!]!; i <= last; i++) {
    const does = codeAt(code, i);
    const enters = does === opcode.enter || does === opcode.blockingEnter;
    if (enters && argumentAt(code, rank, i) === collective) return true;
  }
  return false;
}
