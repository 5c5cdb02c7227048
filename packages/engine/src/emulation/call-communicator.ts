/** A communicator whose calls all come down to one. */
import type { Communicator, Elements, Split, Work } from "@trireme/collectives";
import { TriremeError } from "@trireme/core";
import type { GroupCall } from "./group-call.ts";

/** Turns each method into a `GroupCall` and leaves it to `perform`. */
export abstract class CallCommunicator implements Communicator {
  readonly rank: number;
  readonly ranks: number;
  /** World ranks, in the order of rank of the group. */
  readonly members: readonly number[];
  /** How often each list of members was made a group. */
  protected readonly made: Map<string, number>;

  /**
   * @param world This rank among all.
   * @param made The counts of the communicator that this is a group of.
   */
  constructor(world: number, members: readonly number[], made: Map<string, number> = new Map()) {
    this.made = made;
    this.members = members;
    this.rank = members.indexOf(world);
    this.ranks = members.length;
  }

  protected abstract perform(call: GroupCall): Work;

  /** A group of these world ranks, the `ordinal`-th of them. */
  protected abstract subgroup(members: readonly number[], ordinal: number): Communicator;

  abstract abort(reason: string): void;

  abstract close(): void;

  group(members: readonly number[]): Communicator {
    const world = members.map((member) => this.members[member]!);
    // From 1: 0 is the communicator of all ranks.
    const ordinal = (this.made.get(world.join()) ?? 0) + 1;
    this.made.set(world.join(), ordinal);
    return this.subgroup(world, ordinal);
  }

  send(data: Elements, to: number): Work {
    return this.perform({
      operation: "send",
      peer: to,
      input: data,
      output: undefined,
      on: (group) => group.send(data, to),
    });
  }

  receive(data: Elements, from: number): Work {
    return this.perform({
      operation: "receive",
      peer: from,
      input: undefined,
      output: data,
      on: (group) => group.receive(data, from),
    });
  }

  allReduce(data: Elements): Work {
    return this.perform({
      operation: "all-reduce",
      peer: -1,
      input: data,
      output: data,
      on: (group) => group.allReduce(data),
    });
  }

  reduce(data: Elements, root: number): Work {
    return this.perform({
      operation: "reduce",
      peer: root,
      input: data,
      output: this.rank === root ? data : undefined,
      on: (group) => group.reduce(data, root),
    });
  }

  reduceScatter(input: Elements, output: Elements): Work {
    return this.perform({
      operation: "reduce-scatter",
      peer: -1,
      input,
      sends: this.#even(output.length),
      output,
      on: (group) => group.reduceScatter(input, output),
    });
  }

  reduceScatterV(input: Elements, output: Elements, counts: readonly number[]): Work {
    return this.perform({
      operation: "reduce-scatter-v",
      peer: -1,
      input,
      sends: { counts },
      output,
      on: (group) => group.reduceScatterV(input, output, counts),
    });
  }

  allGather(input: Elements, output: Elements): Work {
    return this.perform({
      operation: "all-gather",
      peer: -1,
      input,
      output,
      receives: this.#even(input.length),
      on: (group) => group.allGather(input, output),
    });
  }

  allGatherV(input: Elements, output: Elements, split: Split): Work {
    return this.perform({
      operation: "all-gather-v",
      peer: -1,
      input,
      output,
      receives: split,
      on: (group) => group.allGatherV(input, output, split),
    });
  }

  broadcast(data: Elements, root: number): Work {
    const isRoot = this.rank === root;
    return this.perform({
      operation: "broadcast",
      peer: root,
      input: isRoot ? data : undefined,
      output: isRoot ? undefined : data,
      on: (group) => group.broadcast(data, root),
    });
  }

  scatter(input: Elements | undefined, output: Elements, root: number): Work {
    return this.perform({
      operation: "scatter",
      peer: root,
      input: this.rank === root ? input : undefined,
      sends: this.#even(output.length),
      output,
      on: (group) => group.scatter(input, output, root),
    });
  }

  scatterV(
    input: Elements | undefined,
    output: Elements,
    root: number,
    split: Split | undefined,
  ): Work {
    return this.perform({
      operation: "scatter-v",
      peer: root,
      input: this.rank === root ? input : undefined,
      sends: split,
      output,
      on: (group) => group.scatterV(input, output, root, split),
    });
  }

  gather(input: Elements, output: Elements | undefined, root: number): Work {
    return this.perform({
      operation: "gather",
      peer: root,
      input,
      output: this.rank === root ? output : undefined,
      receives: this.#even(input.length),
      on: (group) => group.gather(input, output, root),
    });
  }

  gatherV(
    input: Elements,
    output: Elements | undefined,
    root: number,
    split: Split | undefined,
  ): Work {
    return this.perform({
      operation: "gather-v",
      peer: root,
      input,
      output: this.rank === root ? output : undefined,
      receives: split,
      on: (group) => group.gatherV(input, output, root, split),
    });
  }

  allToAll(input: Elements, output: Elements): Work {
    const count = input.length / this.ranks;
    if (!Number.isInteger(count) || output.length !== input.length) {
      throw new TriremeError(
        "COUNT",
        `all-to-all of ${input.length} to ${output.length} elements; both must be the same multiple of ${this.ranks} ranks`,
      );
    }
    const split = this.#even(count);
    return this.perform({
      operation: "all-to-all",
      peer: -1,
      input,
      sends: split,
      output,
      receives: split,
      on: (group) => group.allToAll(input, output),
    });
  }

  allToAllV(input: Elements, sends: Split, output: Elements, receives: Split): Work {
    return this.perform({
      operation: "all-to-all-v",
      peer: -1,
      input,
      sends,
      output,
      receives,
      on: (group) => group.allToAllV(input, sends, output, receives),
    });
  }

  barrier(): Work {
    return this.perform({
      operation: "barrier",
      peer: -1,
      input: undefined,
      output: undefined,
      on: (group) => group.barrier(),
    });
  }

  #even(count: number): Split {
    return { counts: this.members.map(() => count) };
  }
}
