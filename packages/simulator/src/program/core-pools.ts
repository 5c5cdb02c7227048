/** Hosts whose ranks share their cores: one pool of cores each. */
import type { Seconds } from "@trireme/core";
import { SharedCores } from "./shared-cores.ts";

/** A host and the ranks on it. */
export interface SharedHost {
  readonly cores: number;
  readonly ranks: readonly number[];
}

export class CorePools {
  readonly #pools: readonly SharedCores[];
  readonly #poolOf: Int32Array;
  readonly #next: Float64Array;

  /** Pools of the hosts that have more ranks than cores; undefined where none has. */
  static of(hosts: readonly SharedHost[], ranks: number): CorePools | undefined {
    const shared = hosts.filter((host) => host.ranks.length > host.cores);
    return shared.length === 0 ? undefined : new CorePools(shared, ranks);
  }

  private constructor(shared: readonly SharedHost[], ranks: number) {
    this.#pools = shared.map((host) => new SharedCores(host.cores));
    this.#poolOf = new Int32Array(ranks).fill(-1);
    shared.forEach((host, pool) => {
      for (const rank of host.ranks) this.#poolOf[rank] = pool;
    });
    this.#next = new Float64Array(shared.length).fill(Infinity);
  }

  /** Pool of a rank; -1 when it has a core of its own. */
  poolOf(rank: number): number {
    return this.#poolOf[rank]!;
  }

  /** A rank starts computing what would take `work` alone. */
  start(pool: number, now: Seconds, rank: number, work: Seconds): void {
    this.#pools[pool]!.start(now, rank, work);
  }

  /** When the pool's next rank is done if nothing changes before. */
  next(pool: number): Seconds {
    const next = this.#pools[pool]!.next();
    this.#next[pool] = next;
    return next;
  }

  /** The rank that is done at `now`; -1 where another came or went since that was told. */
  finish(pool: number, now: Seconds): number {
    return now < this.#next[pool]! ? -1 : this.#pools[pool]!.finish(now);
  }
}
