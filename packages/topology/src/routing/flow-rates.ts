/**
 * Max-min fair rates of flows over links, kept up to date while flows come and go. Rates are those
 * of progressive filling (Bertsekas and Gallager: Data Networks, section 6.5.2): all flows rise
 * together, and a flow stops where a link on its way is full. A flow may take more or less of a link
 * than its rate, as the parts of a collective do that go different ways: then it has a weight there.
 *
 * A change does not start the filling anew. Below the level where the changed flows' links fill
 * first, before or after the change, every flow rises as it did; so flows slower than that level
 * keep their rates, and of the others only those that share links with a changed flow, directly or
 * through each other, are filled again.
 */
import { type BytesPerSecond, EventQueue, TriremeError } from "@trireme/core";

export class FlowRates {
  readonly #capacity: Float64Array;
  /** Flows on each link, with their weights. */
  readonly #members = new Map<number, Map<number, number>>();
  readonly #routes = new Map<number, Int32Array>();
  readonly #rates = new Map<number, BytesPerSecond>();
  #next = 0;
  /** Links whose flows must be looked at again, and the level from which on. */
  readonly #dirty = new Set<number>();
  readonly #entered = new Set<number>();
  /** Flows that were filled again since `changed` was asked last. */
  #changed = new Set<number>();
  #level = Infinity;

  /**
   * @param capacity Of every link, by link number; see `capacities`.
   * @throws TriremeError "FLOW" on a capacity that is negative or not finite.
   */
  constructor(capacity: ArrayLike<number>) {
    this.#capacity = Float64Array.from(capacity);
    const wrong = this.#capacity.findIndex((c) => !isCapacity(c));
    if (wrong >= 0) throw capacityError(wrong, this.#capacity[wrong]!);
  }

  /** Flows at present. */
  get flows(): number {
    return this.#routes.size;
  }

  /**
   * Adds a flow over links and returns its number. A flow without links has an infinite rate; a
   * link that stands twice on a route counts once.
   * @param weights By place in `links`: what the flow takes of each, in units of its rate; 1 when left
   * out. Of a link that stands twice the last counts.
   * @throws TriremeError "FLOW" on an unknown link, or a weight that is not above 0.
   */
  add(links: ArrayLike<number>, weights?: ArrayLike<number>): number {
    const ways = new Map(Array.from(links, (link, i) => [link, weights?.[i] ?? 1]));
    for (const [link, weight] of ways) {
      if (!(link in this.#capacity)) {
        throw new TriremeError("FLOW", `link ${link} is outside 0..${this.#capacity.length - 1}`);
      }
      if (!(weight > 0 && weight < Infinity)) {
        throw new TriremeError("FLOW", `weight ${weight} on link ${link}: use one above 0`);
      }
    }
    const flow = this.#next++;
    this.#routes.set(flow, Int32Array.from(ways.keys()));
    if (ways.size === 0) {
      this.#rates.set(flow, Infinity);
      this.#changed.add(flow);
      return flow;
    }
    for (const [link, weight] of ways) {
      const members = this.#members.get(link);
      if (members) members.set(flow, weight);
      else this.#members.set(link, new Map([[flow, weight]]));
      this.#dirty.add(link);
    }
    this.#entered.add(flow);
    return flow;
  }

  /**
   * Takes a flow away.
   * @throws TriremeError "FLOW" when there is none of this number.
   */
  remove(flow: number): void {
    const route = this.#routeOf(flow);
    const rate = this.#rates.get(flow);
    // The links of a flow fill at its rate or later, so nothing slower depends on it.
    if (rate !== undefined) this.#level = Math.min(this.#level, rate);
    for (const link of route) {
      const members = this.#members.get(link)!;
      members.delete(flow);
      if (members.size === 0) this.#members.delete(link);
      this.#dirty.add(link);
    }
    this.#entered.delete(flow);
    this.#changed.delete(flow);
    this.#routes.delete(flow);
    this.#rates.delete(flow);
  }

  /**
   * Changes what a link carries, as when its cable degrades; 0 stops its flows.
   * @throws TriremeError "FLOW" on an unknown link, or a capacity that is negative or not finite.
   */
  setCapacity(link: number, capacity: BytesPerSecond): void {
    if (!(link in this.#capacity)) {
      throw new TriremeError("FLOW", `link ${link} is outside 0..${this.#capacity.length - 1}`);
    }
    if (!isCapacity(capacity)) throw capacityError(link, capacity);
    // A link fills at the mean of what its flows leave, before as after; both bound the level.
    this.#level = Math.min(this.#level, this.#fillingLevel(link));
    this.#capacity[link] = capacity;
    this.#dirty.add(link);
  }

  /**
   * Rate of a flow under the flows of now.
   * @throws TriremeError "FLOW" when there is none of this number.
   */
  rate(flow: number): BytesPerSecond {
    this.#routeOf(flow);
    this.#settle();
    return this.#rates.get(flow)!;
  }

  /** Flows of now whose rates may have changed since this was asked last, in the order in which they did. */
  changed(): ReadonlySet<number> {
    this.#settle();
    const changed = this.#changed;
    if (changed.size > 0) this.#changed = new Set();
    return changed;
  }

  #routeOf(flow: number): Int32Array {
    const route = this.#routes.get(flow);
    if (!route) throw new TriremeError("FLOW", `there is no flow ${flow}`);
    return route;
  }

  /**
   * Level at which a link fills when its flows rise together, those that stop earlier elsewhere
   * keeping their rates: x with Σ weight min(rate, x) = capacity. Infinite when it never fills.
   */
  #fillingLevel(link: number): BytesPerSecond {
    const members = this.#members.get(link);
    if (!members) return Infinity;
    const risen: { rate: BytesPerSecond; weight: number }[] = [];
    let rising = 0;
    for (const [flow, weight] of members) {
      const rate = this.#rates.get(flow);
      if (rate === undefined || this.#entered.has(flow)) rising += weight;
      else risen.push({ rate, weight });
    }
    risen.sort((x, y) => y.rate - x.rate);
    let left = this.#capacity[link]!;
    for (const { rate, weight } of risen) left -= weight * rate;
    // Lets the fastest flow rise with the new ones, until the level lies above the next.
    for (const { rate, weight } of risen) {
      if (rising > 0 && left / rising >= rate) return left / rising;
      left += weight * rate;
      rising += weight;
    }
    return rising === 0 ? Infinity : Math.max(0, left / rising);
  }

  /** Brings the rates up to date. */
  #settle(): void {
    if (this.#dirty.size === 0) return;
    let level = this.#level;
    for (const link of this.#dirty) level = Math.min(level, this.#fillingLevel(link));
    // Rounding must not leave out a flow whose rate is the level.
    level *= 1 - 1e-9;

    // Flows that rise again, and the links that they meet.
    const again = new Set<number>();
    const links = [...this.#dirty];
    const seen = new Set(links);
    for (let i = 0; i < links.length; i++) {
      for (const flow of this.#members.get(links[i]!)?.keys() ?? []) {
        if (again.has(flow)) continue;
        const rate = this.#rates.get(flow);
        if (rate !== undefined && rate < level && !this.#entered.has(flow)) continue;
        again.add(flow);
        for (const link of this.#routes.get(flow)!) {
          if (!seen.has(link)) {
            seen.add(link);
            links.push(link);
          }
        }
      }
    }
    this.#fill(links, again);
    this.#dirty.clear();
    this.#entered.clear();
    this.#level = Infinity;
  }

  /** Progressive filling of some flows over what the others leave. */
  #fill(links: readonly number[], again: ReadonlySet<number>): void {
    const slots = new Map(links.map((link, slot) => [link, slot]));
    const left = new Float64Array(links.length);
    const rising = new Int32Array(links.length);
    const weights = new Float64Array(links.length);
    const queue = new EventQueue(Math.max(16, links.length));
    for (const [slot, link] of links.entries()) {
      let rest = this.#capacity[link]!;
      for (const [flow, weight] of this.#members.get(link) ?? []) {
        if (again.has(flow)) {
          rising[slot]!++;
          weights[slot]! += weight;
        } else rest -= weight * this.#rates.get(flow)!;
      }
      left[slot] = Math.max(0, rest);
    }
    for (let slot = 0; slot < links.length; slot++) {
      if (rising[slot]! > 0) queue.push(left[slot]! / weights[slot]!, slot);
    }
    const stopped = new Set<number>();
    while (queue.size > 0) {
      const slot = queue.pop();
      if (rising[slot] === 0) continue;
      const level = Math.max(queue.now, left[slot]! / weights[slot]!);
      if (level > queue.now) {
        // Flows have left this link since it was entered: it fills later.
        queue.push(level, slot);
        continue;
      }
      for (const flow of this.#members.get(links[slot]!)!.keys()) {
        if (!again.has(flow) || stopped.has(flow)) continue;
        stopped.add(flow);
        this.#rates.set(flow, level);
        this.#changed.add(flow);
        for (const link of this.#routes.get(flow)!) {
          const other = slots.get(link)!;
          const weight = this.#members.get(link)!.get(flow)!;
          left[other] = Math.max(0, left[other]! - weight * level);
          weights[other] = --rising[other]! === 0 ? 0 : Math.max(0, weights[other]! - weight);
        }
      }
    }
  }
}

function isCapacity(c: number): boolean {
  return c >= 0 && c < Infinity;
}

function capacityError(link: number, capacity: number): TriremeError {
  return new TriremeError(
    "FLOW",
    `link ${link} of ${capacity} B/s: use a finite capacity from 0 up`,
  );
}
