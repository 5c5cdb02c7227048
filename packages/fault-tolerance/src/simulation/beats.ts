/**
 * When hosts report: each once a period, evenly one after another, so that host i's turns are known
 * without being played. Beat n is host n mod `hosts`, at (n + ½) · period / hosts.
 */
import type { Seconds } from "@trireme/core";

export class Beats {
  readonly #hosts: number;
  readonly #gap: Seconds;

  constructor(hosts: number, period: Seconds) {
    this.#hosts = hosts;
    this.#gap = period / hosts;
  }

  /** The host's first beat after a time. */
  next(host: number, after: Seconds): Seconds {
    const first = this.#first(after);
    const turn = (((host - first) % this.#hosts) + this.#hosts) % this.#hosts;
    return this.#at(first + turn);
  }

  /** The host's last beat up to a time; negative where it has had none. */
  last(host: number, until: Seconds): Seconds {
    const first = this.#first(until);
    const turn = (((host - first) % this.#hosts) + this.#hosts) % this.#hosts;
    return this.#at(first + turn - this.#hosts);
  }

  /** The latest of the first beats after a time of hosts that satisfy `among`; −Infinity of none. */
  latest(after: Seconds, among: (host: number) => boolean): Seconds {
    const first = this.#first(after);
    for (let n = first + this.#hosts - 1; n >= first; n--) {
      if (among(n % this.#hosts)) return this.#at(n);
    }
    return -Infinity;
  }

  /** The earliest of the last beats up to a time of such hosts; −Infinity where one has had none. */
  oldest(until: Seconds, among: (host: number) => boolean): Seconds {
    const first = this.#first(until);
    for (let n = first - this.#hosts; n < first; n++) {
      if (among(((n % this.#hosts) + this.#hosts) % this.#hosts)) {
        return n < 0 ? -Infinity : this.#at(n);
      }
    }
    return Infinity;
  }

  /** The first beat after a time, by the very comparison that an event would meet. */
  #first(after: Seconds): number {
    let n = Math.max(0, Math.floor(after / this.#gap));
    while (n > 0 && this.#at(n - 1) > after) n--;
    while (this.#at(n) <= after) n++;
    return n;
  }

  #at(n: number): Seconds {
    return (n + 0.5) * this.#gap;
  }
}
