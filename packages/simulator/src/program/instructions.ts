/** What ranks do, in order: lists of instructions, each of one rank or shared by ranks that do alike. */
import { TriremeError } from "@trireme/core";
import { IntegerColumn } from "./columns.ts";

/** Instruction codes; the argument is a work (compute), a message (send, receive), a collective, or a time. */
export const opcode = {
  compute: 0,
  send: 1,
  blockingSend: 2,
  receive: 3,
  enter: 4,
  blockingEnter: 5,
  await: 6,
  until: 7,
} as const;

/** Bits of an instruction's first word that hold its code; the others name its shift. */
const codeBits = 3;
const codeMask = 2 ** codeBits - 1;

/**
 * Instructions of all lists in a row: those of list l are `offsets[l] .. offsets[l + 1] - 1`, and rank r
 * runs list `listOf[r]`. The argument of instruction i is for rank r
 * `arguments[i] + moves[r × shifts + (words[i] >> 3)]`, of code `words[i] & 7`.
 */
export interface Instructions {
  readonly listOf: Int32Array;
  readonly offsets: Float64Array;
  readonly words: Uint16Array;
  readonly arguments: Int32Array;
  /** Shifts, of which the first moves nothing. */
  readonly shifts: number;
  readonly moves: Int32Array;
  /** Instructions of the ranks before each, as if no list were shared; one entry more than ranks. */
  readonly before: Float64Array;
}

/** Code of an instruction. */
export function codeAt({ words }: Instructions, i: number): number {
  return words[i]! & codeMask;
}

/** Argument of an instruction for a rank that runs its list. */
export function argumentAt(code: Instructions, rank: number, i: number): number {
  return code.arguments[i]! + code.moves[rank * code.shifts + (code.words[i]! >> codeBits)]!;
}

/** Place of an instruction of its list among a rank's own. */
export function ownPlace({ offsets, listOf }: Instructions, rank: number, i: number): number {
  return i - offsets[listOf[rank]!]!;
}

/** Place of an instruction of its list among all ranks'. */
export function placeOf(code: Instructions, rank: number, i: number): number {
  return code.before[rank]! + ownPlace(code, rank, i);
}

/** Visits the instructions of a rank; `at` is a place of its own among those of all ranks. */
export function eachInstruction(
  code: Instructions,
  rank: number,
  visit: (opcode: number, argument: number, at: number) => void,
): void {
  const list = code.listOf[rank]!;
  let at = code.before[rank]!;
  for (let i = code.offsets[list]!; i < code.offsets[list + 1]!; i++) {
    visit(codeAt(code, i), argumentAt(code, rank, i), at++);
  }
}

/** A list under construction. */
export class InstructionList {
  readonly #words = new IntegerColumn(16);
  readonly #arguments = new IntegerColumn(16);

  get length(): number {
    return this.#words.length;
  }

  /** Appends an instruction; `argument` is before the shift. */
  push(code: number, argument: number, shift: number): void {
    this.#words.push(code | (shift << codeBits));
    this.#arguments.push(argument);
  }

  words(): Int32Array {
    return this.#words.view();
  }

  arguments(): Int32Array {
    return this.#arguments.view();
  }
}

/** Most shifts that an instruction can tell apart. */
const mostShifts = 2 ** (16 - codeBits);

/** How much the arguments of each rank are moved, by shift. */
export class Shifts {
  readonly #ranks: number;
  readonly #moves: ArrayLike<number>[];

  constructor(ranks: number) {
    this.#ranks = ranks;
    this.#moves = [new Int32Array(ranks)];
  }

  get count(): number {
    return this.#moves.length;
  }

  /** Declares a shift by its move for each rank, and returns its number. */
  declare(moves: ArrayLike<number>): number {
    if (moves.length !== this.#ranks) {
      throw new TriremeError(
        "PROGRAM",
        `a shift moves ${moves.length} ranks; give a move for each of ${this.#ranks}`,
      );
    }
    if (this.#moves.length === mostShifts) {
      throw new TriremeError("PROGRAM", `more than ${mostShifts} shifts: use fewer`);
    }
    return this.#moves.push(moves) - 1;
  }

  of(shift: number, rank: number): number {
    return this.#moves[shift]![rank]!;
  }

  /** By rank, then by shift. */
  table(): Int32Array {
    const { count } = this;
    const table = new Int32Array(this.#ranks * count);
    this.#moves.forEach((moves, shift) => {
      for (let rank = 0; rank < this.#ranks; rank++) table[rank * count + shift] = moves[rank]!;
    });
    return table;
  }
}

/** Puts lists in a row. */
export function flatten(
  lists: readonly InstructionList[],
  listOf: Int32Array,
  shifts: Shifts,
): Instructions {
  const offsets = new Float64Array(lists.length + 1);
  lists.forEach((list, l) => (offsets[l + 1] = offsets[l]! + list.length));
  const count = offsets[lists.length]!;
  const words = new Uint16Array(count);
  const args = new Int32Array(count);
  lists.forEach((list, l) => {
    words.set(list.words(), offsets[l]);
    args.set(list.arguments(), offsets[l]);
  });
  const before = new Float64Array(listOf.length + 1);
  listOf.forEach((list, rank) => (before[rank + 1] = before[rank]! + lists[list]!.length));
  return {
    listOf,
    offsets,
    words,
    arguments: args,
    shifts: shifts.count,
    moves: shifts.table(),
    before,
  };
}
