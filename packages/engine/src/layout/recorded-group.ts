/** The ranks of an axis within a stage, whose calls leave spans: from the call to the end of the wait. */
import type { Communicator, Elements, Split, Work } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import type { GroupAxis, GroupOperation, SpanLog } from "./span-log.ts";

/** What parallel layers ask of their ranks. */
export type LayerGroup = Pick<
  Communicator,
  | "rank"
  | "ranks"
  | "send"
  | "receive"
  | "allReduce"
  | "allGather"
  | "allGatherV"
  | "reduceScatter"
  | "reduceScatterV"
  | "allToAll"
  | "allToAllV"
>;

export class RecordedGroup implements LayerGroup {
  readonly #group: Communicator;
  readonly #axis: GroupAxis;
  readonly #spans: SpanLog;
  readonly #now: () => Seconds;

  constructor(group: Communicator, axis: GroupAxis, spans: SpanLog, now: () => Seconds) {
    this.#group = group;
    this.#axis = axis;
    this.#spans = spans;
    this.#now = now;
  }

  get rank(): number {
    return this.#group.rank;
  }

  get ranks(): number {
    return this.#group.ranks;
  }

  send(data: Elements, to: number): Work {
    return this.#record("send", data, (group) => group.send(data, to));
  }

  receive(data: Elements, from: number): Work {
    return this.#record("receive", data, (group) => group.receive(data, from));
  }

  allReduce(data: Elements): Work {
    return this.#record("all-reduce", data, (group) => group.allReduce(data));
  }

  allGather(input: Elements, output: Elements): Work {
    return this.#record("all-gather", output, (group) => group.allGather(input, output));
  }

  allGatherV(input: Elements, output: Elements, split: Split): Work {
    return this.#record("all-gather", output, (group) => group.allGatherV(input, output, split));
  }

  reduceScatter(input: Elements, output: Elements): Work {
    return this.#record("reduce-scatter", input, (group) => group.reduceScatter(input, output));
  }

  reduceScatterV(input: Elements, output: Elements, counts: readonly number[]): Work {
    return this.#record("reduce-scatter", input, (group) =>
      group.reduceScatterV(input, output, counts),
    );
  }

  allToAll(input: Elements, output: Elements): Work {
    return this.#record("all-to-all", input, (group) => group.allToAll(input, output));
  }

  allToAllV(input: Elements, sends: Split, output: Elements, receives: Split): Work {
    return this.#record("all-to-all", input, (group) =>
      group.allToAllV(input, sends, output, receives),
    );
  }

  #record(
    operation: GroupOperation,
    { byteLength }: Elements,
    call: (group: Communicator) => Work,
  ): Work {
    const start = this.#now();
    const work = call(this.#group);
    return {
      get done(): boolean {
        return work.done;
      },
      wait: (): void => {
        work.wait();
        const name = `${this.#axis}/${operation}` as const;
        this.#spans.add(name, -1, -1, start, this.#now(), byteLength, 0);
      },
    };
  }
}
