import type { Communicator } from "@trireme/collectives";

/** Groups of ranks by their members: asked for twice, a group is made once. */
export class CommunicatorGroups {
  readonly #all: Communicator;
  readonly #made = new Map<string, Communicator>();

  constructor(all: Communicator) {
    this.#all = all;
  }

  of(members: readonly number[]): Communicator {
    const name = members.join();
    let group = this.#made.get(name);
    if (group === undefined) {
      group = this.#all.group(members);
      this.#made.set(name, group);
    }
    return group;
  }
}
