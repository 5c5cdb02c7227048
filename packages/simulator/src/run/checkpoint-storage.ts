/**
 * What saving and loading take: how long a save blocks training, when it is durable, and where a
 * state comes back from. Three ways: "blocking", written to storage while training waits; "two-stage",
 * copied to host memory while it waits and written behind it (MegaScale, NSDI 2024, section 4.4;
 * Acme, NSDI 2024); "peer-memory", copied after every step behind computing, to the host's memory and a
 * peer's (Gemini, SOSP 2023; ByteRobust, SOSP 2025), and written to storage now and then.
 */
import { type Bytes, type BytesPerSecond, GBps, type Seconds, TriremeError } from "@trireme/core";
import { geminiPlacement } from "@trireme/checkpoint";
import { type Model, parameters } from "@trireme/workload";

export interface CheckpointStorage {
  readonly way: "blocking" | "two-stage" | "peer-memory";
  /** Steps from a save to the next; of "peer-memory" each step is saved, and this is to storage. */
  readonly every: number;
  /** State that is saved, of the whole run. */
  readonly state: Bytes;
  /** What storage takes and gives, all hosts together. */
  readonly storage: BytesPerSecond;
  /** The most that one host writes to or reads from storage; 25 GB/s (a 200 Gb/s NIC) by default. */
  readonly hostStorage?: BytesPerSecond;
  /** Of a device to its host's memory and back; 25 GB/s (PCIe 4.0 x16, as measured) by default. */
  readonly copy?: BytesPerSecond;
  /** What of it a host gives its peer in slots that training leaves idle; 10 GB/s by default. */
  readonly peer?: BytesPerSecond;
  /** Computing of a step that a copy hides behind, under "peer-memory"; 0 hides nothing. */
  readonly hidden?: Seconds;
  /** Reads of the whole state by a restart: 1 (one reader a group, broadcast) by default; dp without. */
  readonly readers?: number;
  /** By place in the order of ranks, hosts with copies of a host's state; Gemini's pairs by default. */
  readonly copies?: (hosts: number) => readonly (readonly number[])[];
}

/** Bytes of a state: bf16 weights, and fp32 master weights and two moments of Adam, 14 a parameter. */
export function stateBytes(model: Model, perParameter: Bytes = 14): Bytes {
  return parameters(model).total * perParameter;
}

/** A save as the player of runs takes it. */
export interface SaveTimes {
  readonly every: number;
  readonly write: Seconds;
  readonly durable: Seconds;
}

/** Where a state was loaded from. */
export type LoadedFrom = "storage" | "peer" | "memory";

export interface Loading {
  readonly from: LoadedFrom;
  readonly time: Seconds;
}

export class StorageTimes {
  readonly #storage: Required<CheckpointStorage>;
  readonly #devices: number;
  readonly #placements = new Map<number, readonly (readonly number[])[]>();

  /**
   * @param devices Of a host.
   * @throws TriremeError "STORAGE" for rates that are not above 0.
   */
  constructor(storage: CheckpointStorage, devices: number) {
    this.#storage = {
      hostStorage: GBps(25),
      copy: GBps(25),
      peer: GBps(10),
      hidden: 0,
      readers: 1,
      copies: (hosts) => (hosts > 1 ? geminiPlacement(hosts, 2) : [[0]]),
      ...storage,
    };
    this.#devices = devices;
    const whole = this.#storage;
    for (const name of ["state", "storage", "hostStorage", "copy", "peer", "readers"] as const) {
      if (!(whole[name] > 0 && whole[name] < Infinity)) {
        throw new TriremeError("STORAGE", `${name} = ${whole[name]} must be above 0, and finite`);
      }
    }
    if (!Number.isSafeInteger(whole.every) || whole.every < 1) {
      throw new TriremeError("STORAGE", `every = ${whole.every} steps: use a whole number from 1`);
    }
    if (!(whole.hidden >= 0)) {
      throw new TriremeError("STORAGE", `hidden = ${whole.hidden} s must be 0 or more`);
    }
  }

  /** Whether committed steps may be in memories alone. */
  get inMemory(): boolean {
    return this.#storage.way === "peer-memory";
  }

  /** Saves of a run on so many hosts. */
  save(hosts: number): SaveTimes {
    const { way, state, hidden, peer, every } = this.#storage;
    const write = this.toStorage(hosts);
    if (way === "blocking") return { every, write, durable: 0 };
    const copied = this.#copied(hosts);
    if (way === "two-stage") return { every, write: copied, durable: write };
    return { every: 1, write: Math.max(0, copied - hidden), durable: state / hosts / peer };
  }

  /** How long a whole state takes into storage. */
  toStorage(hosts: number): Seconds {
    return this.#stored(hosts, 1);
  }

  /** The last step whose state is in storage once a step is committed. */
  stored(committed: number, hosts: number, step: Seconds): number {
    const { every } = this.#storage;
    const written = committed - Math.ceil(this.toStorage(hosts) / step);
    return Math.max(0, Math.floor(written / every) * every);
  }

  /**
   * @throws TriremeError "STORAGE" where a save would begin before the one before it is durable.
   */
  check(hosts: number, step: Seconds): void {
    const { every } = this.#storage;
    const { write } = this.save(hosts);
    const needed = this.#storage.way === "blocking" ? 0 : this.toStorage(hosts);
    if (every * step + write >= needed) return;
    const message = `a save every ${every} steps of ${step} s, but it takes ${needed} s to be stored: one is under way at a time; use ${Math.ceil((needed - write) / step)} steps or more`;
    throw new TriremeError("STORAGE", message);
  }

  /**
   * How a generation loads: all keep their place; some are `lost`, by place among `hosts` that trained
   * last; or what is in memory is too new or gone.
   */
  load(hosts: number, lost: readonly number[], stale: boolean): Loading {
    const { way, state, peer } = this.#storage;
    const stored: Loading = { from: "storage", time: this.#stored(hosts, this.#storage.readers) };
    if (way !== "peer-memory" || stale || hosts === 0) return stored;
    if (lost.length === 0) return { from: "memory", time: this.#copied(hosts) };
    const gone = new Set(lost);
    const placement = this.#placement(hosts);
    const survive = lost.every((place) => placement[place]!.some((host) => !gone.has(host)));
    if (!survive) return stored;
    return { from: "peer", time: state / hosts / peer + this.#copied(hosts) };
  }

  #copied(hosts: number): Seconds {
    const { state, copy } = this.#storage;
    return state / (hosts * this.#devices) / copy;
  }

  #stored(hosts: number, times: number): Seconds {
    const { state, storage, hostStorage } = this.#storage;
    return (state * times) / Math.min(storage, hosts * hostStorage);
  }

  #placement(hosts: number): readonly (readonly number[])[] {
    let placement = this.#placements.get(hosts);
    if (placement === undefined) {
      this.#placements.set(hosts, (placement = this.#storage.copies(hosts)));
    }
    return placement;
  }
}
