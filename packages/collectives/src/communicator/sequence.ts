/**
 * Numbers of calls, as 32-bit words that go round: what is said of them in the arena is one word. A run
 * of months makes more than 2^31 calls in a group. Two that are compared are never 2^31 apart.
 */

/** The number after this one; none is 0, which stands for no call. */
export function following(sequence: number): number {
  return (sequence + 1) | 0 || 1;
}

/** Whether `a` was made before `b`. */
export function isBefore(a: number, b: number): boolean {
  return ((a - b) | 0) < 0;
}
