/**
 * The lease of a generation: with one, a host that hears of no driver leaves by itself, so that the
 * driver may start another generation without it. It runs from when the report was sent that an
 * order to train answers, and ends a fifth early, as this clock may run slow against the driver's.
 */
import type { Seconds } from "@trireme/core";
import type { Clock } from "./clock.ts";

export class Lease {
  /** Length by the driver's clock; Infinity where it gives none. */
  length: Seconds = Infinity;
  readonly #clock: Clock;
  readonly #over: (length: Seconds) => void;
  /** When the reports were sent that are not answered yet; answers come in their order. */
  #sent: Seconds[] = [];
  #ends: Seconds = Infinity;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock, over: (length: Seconds) => void) {
    this.#clock = clock;
    this.#over = over;
  }

  /** Another connection: what was sent on the one before is answered no more. */
  reconnected(length: Seconds): void {
    this.length = length;
    this.#sent = [];
  }

  reported(): void {
    this.#sent.push(this.#clock.now());
  }

  answered(trains: boolean): void {
    const sent = this.#sent.shift();
    if (!trains || sent === undefined || this.length === Infinity) return;
    const ends = sent + 0.8 * this.length;
    const first = this.#ends === Infinity;
    this.#ends = first ? ends : Math.max(ends, this.#ends);
    // One timer: it finds out for itself that it was put off.
    if (first) this.#wait();
  }

  #wait(): void {
    const { length } = this;
    this.#cancel = this.#clock.after(this.#ends - this.#clock.now(), () => {
      if (this.#clock.now() < this.#ends) this.#wait();
      else {
        this.end();
        this.#over(length);
      }
    });
  }

  /** The generation is left: nothing to leave any more. */
  end(): void {
    this.#cancel();
    this.#ends = Infinity;
  }
}
