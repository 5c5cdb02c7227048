/**
 * Slicing: some ranks of a program in full, all others replayed. What the chosen ranks see of the others
 * is when these enter their collectives and when their messages arrive; that is taken from a recording,
 * so that a slice costs no more than its ranks. Collectives without a chosen rank are left out (PrismLLM,
 * SOSP 2026: slices, virtual participants, pruning). Those replayed do not react: a chosen rank that has
 * become slower is not waited for by others that then delay it in turn.
 */
import { TriremeError } from "@trireme/core";
import type { Observed } from "../program/play-options.ts";
import { type Instructions, eachInstruction, opcode } from "../program/instructions.ts";
import { Program } from "../program/program.ts";

/** A program of the chosen ranks, in their order, and after them of those that are replayed. */
export interface ProgramSlice {
  readonly program: Program;
  /** Chosen ranks: the first of the program. */
  readonly chosen: number;
}

/**
 * Cuts a slice.
 * @param observed Of the whole program, played before.
 * @throws TriremeError "SLICE" when no rank is chosen, or one that is none or twice.
 */
export function sliceProgram(
  whole: Program,
  observed: Observed,
  ranks: readonly number[],
): ProgramSlice {
  const wrong = ranks.find((r, i) => !(r >= 0 && r < whole.ranks) || ranks.indexOf(r) !== i);
  if (ranks.length === 0 || wrong !== undefined) {
    throw new TriremeError(
      "SLICE",
      `ranks ${ranks.join(" ")}: choose at least one of 0..${whole.ranks - 1}, each once`,
    );
  }
  return { program: new Slice(whole, observed, ranks).program, chosen: ranks.length };
}

class Slice {
  readonly program: Program;
  readonly #whole: Program;
  readonly #observed: Observed;
  readonly #code: Instructions;
  /** Place among the chosen of each rank; −1 for the others. */
  readonly #place: Int32Array;
  /** Replayed ranks: one for the others of each group, one for each sender, one that receives. */
  readonly #groupReplay = new Map<number, number>();
  readonly #senderReplay = new Map<number, number>();
  readonly #sink: number;
  readonly #groups = new Map<number, number>();
  readonly #works = new Map<number, number>();
  readonly #collectives = new Map<number, number>();
  readonly #messages = new Map<number, number>();
  /** When the last of those not chosen enters a collective. */
  readonly #entered: Float64Array;

  constructor(whole: Program, observed: Observed, ranks: readonly number[]) {
    this.#whole = whole;
    this.#observed = observed;
    this.#code = whole.instructions();
    this.#place = new Int32Array(whole.ranks).fill(-1);
    ranks.forEach((rank, i) => (this.#place[rank] = i));
    let next = ranks.length;
    this.#sink = next++;
    const { group } = whole.collectives();
    const { from, to } = whole.messages();
    for (const rank of ranks) {
      this.#each(rank, (code, id) => {
        if (code === opcode.receive && this.#place[from[id]!]! < 0) {
          if (!this.#senderReplay.has(from[id]!)) this.#senderReplay.set(from[id]!, next++);
        } else if (code === opcode.enter || code === opcode.blockingEnter) {
          const g = group[id]!;
          const others = whole.groups[g]!.some((member) => this.#place[member]! < 0);
          if (others && !this.#groupReplay.has(g)) this.#groupReplay.set(g, next++);
        }
      });
    }
    this.program = new Program(next);
    whole.labels.forEach((label) => this.program.label(label));
    this.#entered = this.#lastEntries();
    for (const rank of ranks) this.#copy(rank, to);
    this.#replaySenders(ranks);
  }

  #each(rank: number, visit: (code: number, id: number, at: number) => void): void {
    eachInstruction(this.#code, rank, visit);
  }

  #lastEntries(): Float64Array {
    const entered = new Float64Array(this.#whole.collectives().group.length);
    const { taken } = this.#observed;
    for (let rank = 0; rank < this.#whole.ranks; rank++) {
      if (this.#place[rank]! >= 0) continue;
      this.#each(rank, (code, id, at) => {
        if (code !== opcode.enter && code !== opcode.blockingEnter) return;
        if (taken[at]! > entered[id]!) entered[id] = taken[at]!;
      });
    }
    return entered;
  }

  #copy(rank: number, to: Int32Array): void {
    const own = this.#place[rank]!;
    const p = this.program;
    const times = this.#whole.times();
    this.#each(rank, (code, id) => {
      switch (code) {
        case opcode.compute:
          p.compute(own, this.#work(id));
          break;
        case opcode.send:
        case opcode.blockingSend:
          p.send(this.#message(id, own, this.#place[to[id]!]!), code === opcode.blockingSend);
          break;
        case opcode.receive:
          p.receive(this.#received(id, own));
          break;
        case opcode.enter:
        case opcode.blockingEnter:
          p.enter(own, this.#collective(id), code === opcode.blockingEnter);
          break;
        case opcode.await:
          p.await(own, this.#collective(id));
          break;
        default:
          p.until(own, times[id]!);
      }
    });
  }

  #work(id: number): number {
    let own = this.#works.get(id);
    if (own === undefined) {
      const { duration, label } = this.#whole.works();
      this.#works.set(id, (own = this.program.work(duration[id]!, label[id]!)));
    }
    return own;
  }

  /** A message that a chosen rank sends, to a chosen one or into the void. */
  #message(id: number, from: number, to: number): number {
    let own = this.#messages.get(id);
    if (own === undefined) {
      const { duration, latency, send, receive } = this.#whole.messages();
      own = this.program.message({
        from,
        to: to < 0 ? this.#sink : to,
        duration: duration[id]!,
        latency: latency[id]!,
        send: send[id]!,
        receive: receive[id]!,
      });
      this.#messages.set(id, own);
    }
    return own;
  }

  /** A message that a chosen rank receives: of a replayed one it is there when it was. */
  #received(id: number, to: number): number {
    const { from, send, receive } = this.#whole.messages();
    const sender = from[id]!;
    if (this.#place[sender]! >= 0) return this.#message(id, this.#place[sender]!, to);
    let own = this.#messages.get(id);
    if (own === undefined) {
      const replay = this.#senderReplay.get(sender)!;
      const ends = { send: send[id]!, receive: receive[id]! };
      // The sender's way out was as free as it was: what counts is the arrival.
      own = this.program.message({ from: replay, to, duration: 0, latency: 0, ...ends });
      this.#messages.set(id, own);
    }
    return own;
  }

  /** A collective of the chosen members and of one that stands for all others. */
  #collective(id: number): number {
    let own = this.#collectives.get(id);
    if (own !== undefined) return own;
    const { group, stream, duration, label } = this.#whole.collectives();
    const g = group[id]!;
    const replay = this.#groupReplay.get(g);
    let members = this.#groups.get(g);
    if (members === undefined) {
      const chosen = [...this.#whole.groups[g]!].map((m) => this.#place[m]!).filter((m) => m >= 0);
      members = this.program.group(replay === undefined ? chosen : [...chosen, replay]);
      this.#groups.set(g, members);
    }
    own = this.program.collective({
      group: members,
      stream: stream[id]!,
      duration: duration[id]!,
      label: label[id]!,
    });
    this.#collectives.set(id, own);
    if (replay !== undefined) {
      // Members enter the collectives of a group in one order, so these times ascend.
      this.program.until(replay, this.#entered[id]!);
      this.program.enter(replay, own, false);
    }
    return own;
  }

  #replaySenders(ranks: readonly number[]): void {
    const { from } = this.#whole.messages();
    const { arrived } = this.#observed;
    const sent = new Map<number, number[]>();
    for (const rank of ranks) {
      this.#each(rank, (code, id) => {
        if (code !== opcode.receive || this.#place[from[id]!]! >= 0) return;
        const list = sent.get(from[id]!);
        if (list === undefined) sent.set(from[id]!, [id]);
        else list.push(id);
      });
    }
    for (const [sender, list] of sent) {
      const replay = this.#senderReplay.get(sender)!;
      list.sort((a, b) => arrived[a]! - arrived[b]! || a - b);
      for (const id of list) {
        this.program.until(replay, arrived[id]!);
        this.program.send(this.#messages.get(id)!, false);
      }
    }
  }
}
