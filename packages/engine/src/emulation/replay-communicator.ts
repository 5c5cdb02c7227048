/**
 * The communicator of a rank that is run while others are not: those that are run talk to each other
 * for real, and what the others gave comes from their shards of a trace, or, where only time matters,
 * nothing does.
 */
import type { Communicator, Elements, Work } from "@trireme/collectives";
import { CallCommunicator } from "./call-communicator.ts";
import { type GroupCall, giversOf, isSum, partOf, takersOf } from "./group-call.ts";
import { type Replay, title } from "./replay.ts";
import type { ShardGroup } from "./shard-turns.ts";
import { sumInOrder } from "./sum-in-order.ts";
import { CallNumbers, callName, groupName } from "./trace.ts";

export class ReplayCommunicator extends CallCommunicator {
  readonly #replay: Replay;
  readonly #group: ShardGroup;
  readonly #numbers = new CallNumbers();
  /** Groups of those members that are run: their collectives and their messages are in separate rows. */
  readonly #real:
    | { readonly collectives: Communicator; readonly messages: Communicator }
    | undefined;
  /** Members that are run, in the order of the group. */
  readonly #live: readonly number[];

  constructor(replay: Replay, members: readonly number[], ordinal = 0, made?: Map<string, number>) {
    super(replay.options.rank, members, made);
    this.#replay = replay;
    this.#group = { name: groupName(members, ordinal), members };
    const { live, real, carries } = replay.options;
    this.#live = members.filter((member) => live.includes(member));
    const places = this.#live.map((member) => live.indexOf(member));
    this.#real =
      carries && places.length > 1
        ? { collectives: real.group(places), messages: real.group(places) }
        : undefined;
  }

  abort(reason: string): void {
    const { board, real } = this.#replay.options;
    real.abort(reason);
    board?.fail();
  }

  close(): void {
    this.#replay.options.real.close();
  }

  protected subgroup(members: readonly number[], ordinal: number): Communicator {
    return new ReplayCommunicator(this.#replay, members, ordinal, this.made);
  }

  protected perform(given: GroupCall): Work {
    const replay = this.#replay;
    const { board, rank: world, live, deadline, carries } = replay.options;
    const sequence = this.#numbers.next(given);
    const index = replay.next(this.#group, sequence, given);
    // An exchange may be in place: what is overwritten must not be what is still leaving.
    const exchanges = given.sends !== undefined && given.receives !== undefined;
    const call = exchanges && carries ? { ...given, input: given.input?.slice() } : given;
    const { turn } = replay;
    const place = live.indexOf(world);
    board?.call(place);
    const incoming = new Map<number, Elements>();
    const works = carries ? this.#exchange(call, incoming) : [];
    replay.moves(works);
    let finished = false;
    const end = (): void => {
      if (finished) return;
      finished = true;
      if (carries) this.#finish(call, sequence, incoming);
    };
    return {
      get done(): boolean {
        const isOver =
          works.every((work) => work.done) && (board?.isReady(place, index, turn) ?? true);
        if (isOver) end();
        else board?.check();
        return isOver;
      },
      wait: (): void => {
        if (finished) return;
        const busy = (): boolean => replay.poll();
        const what = (): string => title({ ...call, sequence });
        board?.await(place, index, turn, deadline, busy, what);
        for (const work of works) work.wait();
        end();
      },
    };
  }

  /** Starts the messages between members that are run; what is to be added up comes to `incoming`. */
  #exchange(call: GroupCall, incoming: Map<number, Elements>): Work[] {
    if (this.#real === undefined) return [];
    const isMessage = call.operation === "send" || call.operation === "receive";
    const group = isMessage ? this.#real.messages : this.#real.collectives;
    const works: Work[] = [];
    const { input = new Float32Array(0), output } = call;
    const realRank = (member: number): number => this.#live.indexOf(this.members[member]!);
    for (const taker of takersOf(call, this.rank, this.ranks)) {
      if (realRank(taker) < 0) continue;
      works.push(group.send(partOf(input, call.sends, taker), realRank(taker)));
    }
    for (const giver of giversOf(call, this.rank, this.ranks)) {
      if (realRank(giver) < 0) continue;
      let place: Elements = new Float32Array(0);
      if (isSum(call)) {
        place = ownPart(call, this.rank)!.slice();
        incoming.set(giver, place);
      } else if (output !== undefined) {
        place = partOf(output, call.receives, giver);
      }
      works.push(group.receive(place, realRank(giver)));
    }
    return works;
  }

  /** Puts in place what members gave that are not run, and what this rank keeps for itself. */
  #finish(call: GroupCall, sequence: number, incoming: ReadonlyMap<number, Elements>): void {
    const { output } = call;
    if (output === undefined) return;
    const what = (): string => title({ ...call, sequence });
    const recorded = (giver: number): Elements => {
      const world = this.members[giver]!;
      const name = callName(this.#group.name, { ...call, sequence }, this.rank);
      return this.#replay.data(world).part(name, this.rank, what);
    };
    const givers = giversOf(call, this.rank, this.ranks);
    if (isSum(call)) {
      const parts = Array.from(
        { length: this.ranks },
        (_, r) => incoming.get(r) ?? (r === this.rank ? ownPart(call, this.rank)! : recorded(r)),
      );
      sumInOrder(output, parts);
      return;
    }
    const own = ownPart(call, this.rank);
    if (own !== undefined && call.operation !== "broadcast") {
      const place = partOf(output, call.receives, this.rank);
      if (place.byteOffset !== own.byteOffset || place.buffer !== own.buffer) place.set(own);
    }
    for (const giver of givers) {
      if (this.#live.includes(this.members[giver]!)) continue;
      partOf(output, call.receives, giver).set(recorded(giver));
    }
  }
}

/** The part of its own input that a rank keeps. */
function ownPart({ input, sends }: GroupCall, rank: number): Elements | undefined {
  return input && partOf(input, sends, rank);
}
