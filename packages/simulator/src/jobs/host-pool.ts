/**
 * Free GPUs of hosts. A job of a host's GPUs or more has whole hosts; a smaller one shares the fullest
 * host that has room, so that whole hosts stay free for gangs.
 */
import { TriremeError } from "@trireme/core";

/** GPUs of hosts that a job holds. */
export interface Allocation {
  readonly hosts: Int32Array;
  /** On each of them. */
  readonly gpus: Int32Array;
}

export class HostPool {
  readonly #perHost: number;
  readonly #free: Int32Array;
  readonly #up: Uint8Array;
  /** Hosts that are up by free GPUs, and each host's place in its list. */
  readonly #byFree: number[][];
  readonly #place: Int32Array;

  constructor(hosts: number, perHost: number) {
    for (const [what, n] of [["hosts", hosts] as const, ["GPUs a host", perHost] as const]) {
      if (!Number.isSafeInteger(n) || n < 1) {
        throw new TriremeError("JOBS", `${n} ${what}: give an integer from 1 up`);
      }
    }
    this.#perHost = perHost;
    this.#free = new Int32Array(hosts).fill(perHost);
    this.#up = new Uint8Array(hosts).fill(1);
    this.#byFree = Array.from({ length: perHost + 1 }, () => []);
    this.#place = new Int32Array(hosts);
    // The first hosts are taken first: lists give their last.
    for (let host = hosts - 1; host >= 0; host--) this.#enter(host);
  }

  get hosts(): number {
    return this.#free.length;
  }

  get perHost(): number {
    return this.#perHost;
  }

  /** Takes GPUs; undefined when they do not fit now. */
  take(gpus: number): Allocation | undefined {
    if (gpus === 0) return { hosts: new Int32Array(), gpus: new Int32Array() };
    if (gpus < this.#perHost) {
      for (let free = gpus; free <= this.#perHost; free++) {
        const host = this.#byFree[free]!.at(-1);
        if (host === undefined) continue;
        this.#change(host, -gpus);
        return { hosts: Int32Array.of(host), gpus: Int32Array.of(gpus) };
      }
      return undefined;
    }
    const count = this.hostsFor(gpus);
    const whole = this.#byFree[this.#perHost]!;
    if (whole.length < count) return undefined;
    const hosts = Int32Array.from({ length: count }, (_, i) => whole[whole.length - 1 - i]!);
    for (const host of hosts) this.#change(host, -this.#perHost);
    return { hosts, gpus: new Int32Array(count).fill(this.#perHost) };
  }

  /** Gives them back; hosts that went down since keep them until they are up. */
  release(a: Allocation): void {
    for (const [i, host] of a.hosts.entries()) this.#change(host, a.gpus[i]!);
  }

  /** Whole hosts that a job of so many GPUs has. */
  hostsFor(gpus: number): number {
    return Math.ceil(gpus / this.#perHost);
  }

  /** Whether GPUs would fit if some allocations were given back. */
  fitsWithout(gpus: number, given: readonly Allocation[]): boolean {
    const more = new Map<number, number>();
    for (const a of given) {
      for (const [i, host] of a.hosts.entries()) {
        if (this.#up[host] === 1) more.set(host, (more.get(host) ?? 0) + a.gpus[i]!);
      }
    }
    if (gpus < this.#perHost) {
      return [...more].some(([host, n]) => this.#free[host]! + n >= gpus);
    }
    let whole = this.#byFree[this.#perHost]!.length;
    for (const [host, n] of more) if (this.#free[host]! + n === this.#perHost) whole++;
    return whole >= this.hostsFor(gpus);
  }

  /** A host goes down or comes up. */
  setUp(host: number, up: boolean): void {
    if (!(host in this.#free)) {
      throw new TriremeError("JOBS", `host ${host} is not in 0..${this.hosts - 1}`);
    }
    if ((this.#up[host] === 1) === up) return;
    if (!up) this.#leave(host);
    this.#up[host] = up ? 1 : 0;
    if (up) this.#enter(host);
  }

  #change(host: number, by: number): void {
    const up = this.#up[host] === 1;
    if (up) this.#leave(host);
    this.#free[host]! += by;
    if (up) this.#enter(host);
  }

  #enter(host: number): void {
    this.#place[host] = this.#byFree[this.#free[host]!]!.push(host) - 1;
  }

  #leave(host: number): void {
    const list = this.#byFree[this.#free[host]!]!;
    const last = list.pop()!;
    if (last === host) return;
    list[this.#place[host]!] = last;
    this.#place[last] = this.#place[host]!;
  }
}
