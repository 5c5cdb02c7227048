/** The communicator of one group: checks calls, numbers them, and starts their tasks. */
import { TriremeError } from "@trireme/core";
import { checkSplit } from "./check-split.ts";
import type { Communicator, Work } from "./communicator.ts";
import { type Elements, bytesOf, elementType } from "./element-type.ts";
import type { Endpoint } from "./endpoint.ts";
import * as exchanges from "./exchanges.ts";
import { type Split, evenSplit } from "./exchanges.ts";
import { announce, announcedCall, groupSlot } from "./group-table.ts";
import { GroupView } from "./group-view.ts";
import { type Call, type Operation, sameCall } from "./operation.ts";
import * as reductions from "./reductions.ts";
import { type Parts, phases } from "./parts.ts";
import { following } from "./sequence.ts";
import { type ShortMessage, sendAtOnce, takeAtOnce } from "./short-message.ts";
import { Task } from "./task.ts";

/** Calls whose counts may differ between ranks announce this one. */
const varying = -1;

/** A call that was over at once. */
const over: Work = { done: true, wait: () => {} };

export class Group implements Communicator {
  readonly rank: number;
  readonly ranks: number;
  readonly #view: GroupView;
  readonly #endpoint: Endpoint;
  readonly #slot: number;
  /** How often each list of members was made a group from here. */
  readonly #groups: Map<string, number> = new Map();
  readonly #sent: number[];
  readonly #received: number[];
  #calls: number;
  #closed = false;

  /**
   * @param members Ranks of the arena, in the order of rank of the group.
   * @param made Number of the call before the first, of each kind of numbering.
   */
  constructor(endpoint: Endpoint, slot: number, members: readonly number[], made = 0) {
    this.#endpoint = endpoint;
    this.#slot = slot;
    this.rank = members.indexOf(endpoint.rank);
    this.ranks = members.length;
    this.#view = new GroupView(this.rank, members, endpoint.layout.slotBytes);
    this.#calls = made;
    this.#sent = members.map(() => made);
    this.#received = members.map(() => made);
  }

  group(members: readonly number[]): Communicator {
    this.#checkOpen();
    for (const member of members) this.#checkRank(member);
    if (new Set(members).size !== members.length) {
      throw new TriremeError("GROUP", `group ${members.join(", ")} names a rank twice`);
    }
    if (!members.includes(this.rank)) {
      throw new TriremeError(
        "GROUP",
        `rank ${this.rank} is not in group ${members.join(", ")}; only its members make it`,
      );
    }
    const world = members.map((member) => this.#view.members[member]!);
    const name = world.join();
    const ordinal = this.#groups.get(name) ?? 0;
    this.#groups.set(name, ordinal + 1);
    const { words, layout } = this.#endpoint;
    const slot = groupSlot(words, layout, this.#slot, world, ordinal);
    return new Group(this.#endpoint, slot, world);
  }

  send(data: Elements, to: number): Work {
    const call = this.#call("send", data, data.length, this.#checkPeer(to));
    const short = this.#short(call, next(this.#sent, to), data);
    if (sendAtOnce(this.#endpoint, short)) return over;
    const message = this.#view.message(to, phases.pointToPoint, bytesOf(data), data.length);
    return this.#start(call, short.key.sequence, { out: [message] });
  }

  receive(data: Elements, from: number): Work {
    const call = this.#call("receive", data, data.length, this.#checkPeer(from));
    const short = this.#short(call, next(this.#received, from), data);
    if (takeAtOnce(this.#endpoint, short)) return over;
    const message = this.#view.message(from, phases.pointToPoint, bytesOf(data), data.length);
    return this.#start(call, short.key.sequence, { in: [message] });
  }

  allReduce(data: Elements): Work {
    const call = this.#call("all-reduce", data, data.length);
    const { oneShotBytes } = this.#endpoint.layout;
    return this.#collective(call, () => reductions.allReduce(this.#view, data, oneShotBytes));
  }

  reduce(data: Elements, root: number): Work {
    const call = this.#call("reduce", data, data.length, this.#checkRank(root));
    return this.#collective(call, () => reductions.reduce(this.#view, data, root));
  }

  reduceScatter(input: Elements, output: Elements): Work {
    const call = this.#call("reduce-scatter", input, output.length);
    checkSplit(call, this, input, evenSplit(output.length, this.ranks), output);
    const { counts } = evenSplit(output.length, this.ranks);
    if (output.length === 0) return this.#collective(call, () => ({}));
    return this.#collective(call, () =>
      reductions.reduceScatter(this.#view, input, output, counts),
    );
  }

  reduceScatterV(input: Elements, output: Elements, counts: readonly number[]): Work {
    const call = this.#call("reduce-scatter-v", input, varying);
    checkSplit(call, this, input, { counts }, output);
    return this.#collective(call, () =>
      reductions.reduceScatter(this.#view, input, output, counts),
    );
  }

  allGather(input: Elements, output: Elements): Work {
    const call = this.#call("all-gather", input, input.length);
    const split = evenSplit(input.length, this.ranks);
    checkSplit(call, this, output, split, input);
    return this.#collective(call, () => exchanges.allGather(this.#view, input, output, split));
  }

  allGatherV(input: Elements, output: Elements, split: Split): Work {
    const call = this.#call("all-gather-v", input, varying);
    checkSplit(call, this, output, split, input);
    return this.#collective(call, () => exchanges.allGather(this.#view, input, output, split));
  }

  broadcast(data: Elements, root: number): Work {
    const call = this.#call("broadcast", data, data.length, this.#checkRank(root));
    return this.#collective(call, () => exchanges.broadcast(this.#view, data, root));
  }

  scatter(input: Elements | undefined, output: Elements, root: number): Work {
    const call = this.#call("scatter", output, output.length, this.#checkRank(root));
    return this.#scatter(call, input, output, root, evenSplit(output.length, this.ranks));
  }

  scatterV(
    input: Elements | undefined,
    output: Elements,
    root: number,
    split: Split | undefined,
  ): Work {
    const call = this.#call("scatter-v", output, varying, this.#checkRank(root));
    return this.#scatter(call, input, output, root, split);
  }

  #scatter(
    call: Call,
    input: Elements | undefined,
    output: Elements,
    root: number,
    split: Split | undefined,
  ): Work {
    if (this.rank === root) checkSplit(call, this, input, split, output);
    return this.#collective(call, () => exchanges.scatter(this.#view, input, output, root, split));
  }

  gather(input: Elements, output: Elements | undefined, root: number): Work {
    const call = this.#call("gather", input, input.length, this.#checkRank(root));
    return this.#gather(call, input, output, root, evenSplit(input.length, this.ranks));
  }

  gatherV(
    input: Elements,
    output: Elements | undefined,
    root: number,
    split: Split | undefined,
  ): Work {
    const call = this.#call("gather-v", input, varying, this.#checkRank(root));
    return this.#gather(call, input, output, root, split);
  }

  #gather(
    call: Call,
    input: Elements,
    output: Elements | undefined,
    root: number,
    split: Split | undefined,
  ): Work {
    if (this.rank === root) checkSplit(call, this, output, split, input);
    return this.#collective(call, () => exchanges.gather(this.#view, input, output, root, split));
  }

  allToAll(input: Elements, output: Elements): Work {
    const count = input.length / this.ranks;
    const call = this.#call("all-to-all", input, count);
    const split = evenSplit(count, this.ranks);
    if (!Number.isInteger(count) || output.length !== input.length) {
      throw new TriremeError(
        "COUNT",
        `all-to-all of ${input.length} to ${output.length} elements; both must be the same multiple of ${this.ranks} ranks`,
      );
    }
    checkSplit(call, this, input, split);
    checkSplit(call, this, output, split);
    return this.#collective(call, () =>
      exchanges.allToAll(this.#view, input, split, output, split),
    );
  }

  allToAllV(input: Elements, sends: Split, output: Elements, receives: Split): Work {
    const call = this.#call("all-to-all-v", input, varying);
    checkSplit(call, this, input, sends);
    checkSplit(call, this, output, receives);
    return this.#collective(call, () =>
      exchanges.allToAll(this.#view, input, sends, output, receives),
    );
  }

  barrier(): Work {
    const call = this.#call("barrier", new Float32Array(0), 0);
    return this.#collective(call, () => exchanges.barrier(this.#view));
  }

  abort(reason: string): void {
    this.#endpoint.abort(reason);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#slot === 0) this.#endpoint.close();
  }

  #call(operation: Operation, data: Elements, count: number, peer = -1): Call {
    this.#checkOpen();
    return { operation, type: elementType(data), count, peer };
  }

  #short(call: Call, sequence: number, data: Elements): ShortMessage {
    const key = { group: this.#slot, phase: phases.pointToPoint, sequence };
    return { peer: this.#view.members[call.peer]!, key, call, data };
  }

  /** Announces a call, compares it with those of the other members, and starts it. */
  #collective(call: Call, parts: () => Parts): Work {
    this.#calls = following(this.#calls);
    const sequence = this.#calls;
    const { words, layout, rank } = this.#endpoint;
    const { members } = this.#view;
    this.#endpoint.check();
    announce(words, layout, this.#slot, rank, sequence, call);
    const task = this.#task(call, sequence, parts());
    for (const peer of members) {
      const theirs = announcedCall(words, layout, this.#slot, peer, sequence);
      if (theirs !== undefined && !sameCall(call, theirs)) {
        this.#endpoint.fail("MISMATCH", task.describeMismatch(peer, theirs));
      }
    }
    this.#endpoint.start(task);
    return task;
  }

  #start(call: Call, sequence: number, parts: Parts): Work {
    const task = this.#task(call, sequence, parts);
    this.#endpoint.start(task);
    return task;
  }

  #task(call: Call, sequence: number, parts: Parts): Task {
    const { members } = this.#view;
    const [endpoint, group] = [this.#endpoint, this.#slot];
    return new Task({ endpoint, group, members, sequence, call, ...parts });
  }

  #checkRank(rank: number): number {
    if (Number.isInteger(rank) && rank >= 0 && rank < this.ranks) return rank;
    throw new TriremeError("RANK", `rank ${rank} must be an integer in 0..${this.ranks - 1}`);
  }

  #checkPeer(rank: number): number {
    if (this.#checkRank(rank) !== this.rank) return rank;
    throw new TriremeError("RANK", `rank ${rank} talks to itself; copy the data instead`);
  }

  #checkOpen(): void {
    if (!this.#closed) return;
    throw new TriremeError("CLOSED", `rank ${this.rank} has closed this communicator`);
  }
}

/** Counts on in one of several numberings. */
function next(numbers: number[], of: number): number {
  const sequence = following(numbers[of]!);
  numbers[of] = sequence;
  return sequence;
}
