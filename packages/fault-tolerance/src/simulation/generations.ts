/**
 * What truly trains: the collective that a generation's workers form. It comes about once, when all
 * members have joined, and each step needs every one of them.
 */
import type { Rng, Seconds } from "@trireme/core";

import type { SimulatedAgent } from "./agent.ts";
import type { EventLoop } from "./event-loop.ts";

/** A generation as its members live it. */
export interface Collective {
  readonly generation: number;
  readonly members: readonly number[];
  /** The first step it trains, batches skipped before it, and the code it runs. */
  readonly step: number;
  readonly skip: number;
  readonly version: number;
  readonly ready: Set<number>;
  formed: boolean;
  /** A member has left: no further step can be done. */
  dead: boolean;
  frozen: boolean;
  /** The last step done; `step` − 1 at first. */
  done: number;
  /** Hosts whose part of a step is saved. */
  readonly shards: Map<number, Set<number>>;
}

/** Told of what truly happens. */
export interface Observer {
  /** A host joins a generation that no record lets it train in. */
  unasked(host: number, generation: number): void;
  formed(collective: Collective): void;
  trained(collective: Collective, step: number): void;
}

export interface GenerationsInput {
  readonly agents: readonly SimulatedAgent[];
  readonly loop: EventLoop;
  readonly rng: Rng;
  readonly saveEvery: number;
  readonly observer: Observer;
}

export class Generations {
  readonly #input: GenerationsInput;
  readonly #all = new Map<number, Collective>();
  readonly poisoned: Set<number> = new Set();
  readonly traps: Set<number> = new Set();
  readonly badVersions: Set<number> = new Set();

  constructor(input: GenerationsInput) {
    this.#input = input;
  }

  /** The record says that a generation may train. */
  open(each: Pick<Collective, "generation" | "members" | "step" | "skip" | "version">): void {
    if (this.#all.has(each.generation)) return;
    const fresh = { formed: false, dead: false, frozen: false, done: each.step - 1 };
    this.#all.set(each.generation, { ...each, ...fresh, ready: new Set(), shards: new Map() });
  }

  get(generation: number): Collective | undefined {
    return this.#all.get(generation);
  }

  /** Collectives that could do a step now. */
  alive(): readonly Collective[] {
    return [...this.#all.values()].filter((each) => this.#whole(each));
  }

  /** An agent has begun to join: it loads its state, and is ready. */
  join(agent: SimulatedAgent): void {
    const { loop, rng } = this.#input;
    const { incarnation, generation } = agent;
    const still = (): boolean =>
      agent.incarnation === incarnation && agent.generation === generation;
    loop.after(1 + 4 * rng.float(), () => {
      if (still() && agent.up && agent.state === "joining") this.#ready(agent);
    });
    loop.after(50 + 20 * rng.float(), () => {
      if (still() && agent.state === "joining") this.leave(agent);
    });
  }

  /** A member has left or stopped: its peers find out by their watchdogs. */
  leave(agent: SimulatedAgent): void {
    const { generation } = agent;
    agent.fail();
    this.left(agent.host, generation);
  }

  /** The member of a generation is in it no longer. */
  left(host: number, generation: number): void {
    const collective = this.#all.get(generation);
    if (collective === undefined || collective.dead || !collective.members.includes(host)) return;
    collective.dead = true;
    for (const peer of collective.members) this.#watch(this.#input.agents[peer]!, generation);
  }

  #watch(agent: SimulatedAgent, generation: number): void {
    const { loop, rng } = this.#input;
    const { incarnation } = agent;
    loop.after(3 + 30 * rng.float(), () => {
      const same = agent.incarnation === incarnation && agent.generation === generation;
      if (same && (agent.state === "training" || agent.state === "joining")) agent.fail();
    });
  }

  #ready(agent: SimulatedAgent): void {
    const { agents, observer } = this.#input;
    const collective = this.#all.get(agent.generation);
    if (collective === undefined || !collective.members.includes(agent.host)) {
      observer.unasked(agent.host, agent.generation);
      return;
    }
    collective.ready.add(agent.host);
    if (collective.formed || collective.ready.size < collective.members.length) return;
    const members = collective.members.map((host) => agents[host]!);
    const { generation } = collective;
    const here = (each: SimulatedAgent): boolean =>
      each.up && each.generation === generation && each.state === "joining";
    if (collective.dead || !members.every(here)) return;
    collective.formed = true;
    for (const each of members) each.state = "training";
    observer.formed(collective);
    this.#plan(collective);
  }

  #whole(collective: Collective): boolean {
    const { formed, dead, members, generation } = collective;
    return (
      formed &&
      !dead &&
      members.every((host) => {
        const agent = this.#input.agents[host]!;
        return agent.up && agent.generation === generation && agent.state === "training";
      })
    );
  }

  #plan(collective: Collective): void {
    const { loop, rng, agents, observer, saveEvery } = this.#input;
    loop.after(2 + 4 * rng.float(), () => {
      if (collective.frozen || !this.#whole(collective)) return;
      const members = collective.members.map((host) => agents[host]!);
      const fails =
        members.some((each) => each.broken) ||
        this.badVersions.has(collective.version) ||
        this.traps.has(collective.done + 1 + collective.skip);
      if (fails) {
        this.leave(members[rng.integer(members.length)]!);
        return;
      }
      const step = ++collective.done;
      observer.trained(collective, step);
      for (const each of members) each.done = step;
      if (saveEvery > 0 && step % saveEvery === 0) {
        for (const each of members) this.#save(collective, each, step, 4 * rng.float());
      }
      if (this.poisoned.has(step + collective.skip)) {
        members[rng.integer(members.length)]!.spike ||= step;
      }
      this.#plan(collective);
    });
  }

  #save(collective: Collective, agent: SimulatedAgent, step: number, wait: Seconds): void {
    const { incarnation } = agent;
    const { loop } = this.#input;
    // Saves end in the order in which they began.
    agent.saveEnds = Math.max(agent.saveEnds, loop.now + wait);
    loop.at(agent.saveEnds, () => {
      const same = agent.incarnation === incarnation && agent.generation === collective.generation;
      if (!agent.up || !same) return;
      agent.saved = Math.max(agent.saved, step);
      const shards = collective.shards.get(step) ?? new Set();
      collective.shards.set(step, shards.add(agent.host));
    });
  }
}
