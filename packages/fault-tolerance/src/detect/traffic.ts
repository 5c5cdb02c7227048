/**
 * What the network says of training: traffic of a step's collectives comes in bursts but never stays
 * away. Traffic that falls below the usual raises an alert; none at all for a while means that the
 * job hangs (MegaScale, section 4.2: at once; ByteRobust, section 4.1: after 10 minutes of zero).
 */
import { TriremeError, type BytesPerSecond, type Seconds, minutes } from "@trireme/core";

export type TrafficSignal =
  /** Below `low` times the host's usual rate: an alert for people. */
  | { readonly kind: "low"; readonly host: number; readonly ratio: number }
  /** Nothing since `since`: look for the hang. */
  | { readonly kind: "zero"; readonly host: number; readonly since: Seconds };

export interface TrafficWatchOptions {
  /** Silence of the network that is a hang; 10 minutes by default. */
  readonly zeroFor?: Seconds;
  /** Share of the usual rate below which traffic is abnormal; 0.5 by default. */
  readonly low?: number;
  /** Weight of the newest sample in the usual rate; 1/16 by default. */
  readonly weight?: number;
}

/** RDMA rates of all hosts. Each incident is told once, and again when the host had recovered. */
export class TrafficWatch {
  readonly #options: Required<TrafficWatchOptions>;
  readonly #usual: Float64Array;
  readonly #lastMoved: Float64Array;
  /** 0 well, 1 low told, 2 zero told. */
  readonly #told: Uint8Array;

  /** @throws TriremeError "TRAFFIC" on options out of range. */
  constructor(hosts: number, options: TrafficWatchOptions = {}) {
    this.#options = { zeroFor: minutes(10), low: 0.5, weight: 1 / 16, ...options };
    const { zeroFor, low, weight } = this.#options;
    if (!(zeroFor > 0 && low >= 0 && low < 1 && weight > 0 && weight <= 1)) {
      throw new TriremeError(
        "TRAFFIC",
        `zeroFor ${zeroFor} s, low ${low}, weight ${weight}: use above 0, [0, 1) and (0, 1]`,
      );
    }
    this.#usual = new Float64Array(hosts).fill(Number.NaN);
    this.#lastMoved = new Float64Array(hosts).fill(Number.NaN);
    this.#told = new Uint8Array(hosts);
  }

  /**
   * Takes a sample of a host's RDMA rate, averaged over a step or more.
   * @throws TriremeError "TRAFFIC" on an unknown host or a rate that is not 0 or more.
   */
  observe(host: number, rate: BytesPerSecond, now: Seconds): TrafficSignal | undefined {
    if (!Number.isInteger(host) || !(host in this.#told) || !(rate >= 0)) {
      throw new TriremeError(
        "TRAFFIC",
        `host ${host} of ${this.#told.length} at ${rate} B/s: use a known host and a rate from 0 up`,
      );
    }
    // The first sample starts the silence: a host may never have sent anything.
    if (rate > 0 || Number.isNaN(this.#lastMoved[host]!)) this.#lastMoved[host] = now;
    if (rate === 0) return this.#zero(host, now);
    const usual = this.#usual[host]!;
    const { low, weight } = this.#options;
    if (rate < low * usual) {
      if (this.#told[host] === 1) return undefined;
      this.#told[host] = 1;
      return { kind: "low", host, ratio: rate / usual };
    }
    this.#told[host] = 0;
    this.#usual[host] = Number.isNaN(usual) ? rate : usual + weight * (rate - usual);
    return undefined;
  }

  #zero(host: number, now: Seconds): TrafficSignal | undefined {
    const since = this.#lastMoved[host]!;
    if (now - since < this.#options.zeroFor || this.#told[host] === 2) return undefined;
    this.#told[host] = 2;
    return { kind: "zero", host, since };
  }

  /** Forgets what was told and what was usual, of one host or all: training has started anew. */
  reset(host?: number): void {
    const [from, to] = host === undefined ? [0, this.#told.length] : [host, host + 1];
    this.#usual.fill(Number.NaN, from, to);
    this.#lastMoved.fill(Number.NaN, from, to);
    this.#told.fill(0, from, to);
  }
}
