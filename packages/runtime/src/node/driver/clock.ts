/** The time that driver and agents live by. */
import type { Seconds } from "@trireme/core";

/** A clock that only goes forward, and wakes. A test may bring its own. */
export interface Clock {
  now(): Seconds;
  /** Calls back once, after so long; returns what cancels it. Infinity never calls. */
  after(delay: Seconds, wake: () => void): () => void;
}

/** setTimeout's greatest delay; a longer one would fire at once. */
const longest = 2 ** 31 - 1;

/** The monotonic clock of this process: setting the wall clock does not move it. */
export const monotonicClock: Clock = {
  now: () => performance.now() / 1000,
  after(delay, wake) {
    if (delay === Infinity) return () => undefined;
    // Upwards: a timer that fires a little early would find nothing to do, and fire again.
    const milliseconds = Math.min(longest, Math.max(0, Math.ceil(delay * 1000)));
    const timer = setTimeout(wake, milliseconds);
    return () => clearTimeout(timer);
  },
};
