/**
 * A copy by the machine's own `memcpy`. `TypedArray.set` copies shared memory one atomic word after
 * the other, at about half of that speed; Node's `fill` with a value as long as its range is one
 * `memcpy`, whatever the memory. The communicator orders the bytes by its counters, so that no copy has
 * to be atomic.
 */
import { Buffer } from "node:buffer";

/**
 * Below this the copy takes as long word by word, and with cold caches far less: what Node does around
 * its `memcpy` then takes some 20 µs.
 */
const short = 4096;

/** Copies `source` to `target` from byte `at` on. For `createCommunicator({ copy })`. */
export function copyBytes(target: Uint8Array, at: number, source: Uint8Array): void {
  // An empty value would fill with zeros.
  if (source.length < short) target.set(source, at);
  else Buffer.prototype.fill.call(target, source, at, at + source.length);
}
