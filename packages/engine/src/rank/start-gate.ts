/**
 * A gate at which ranks wait for a request to have reached all of them. A thread that is woken by a
 * message takes the core of the thread that sends them; without the gate the last rank of a busy
 * machine would hear of a step only when the first have used up their time slices.
 */

/** Shared state: the number of the last request that all ranks may begin. */
export type StartGate = Int32Array;

export function createGate(): StartGate {
  return new Int32Array(new SharedArrayBuffer(4));
}

/** Lets every rank begin request number `turn`; numbers go up by one. */
export function openGate(gate: StartGate, turn: number): void {
  Atomics.store(gate, 0, turn);
  Atomics.notify(gate, 0);
}

/** Waits until request number `turn` may begin, at most `deadline` seconds; whether it may. */
export function awaitGate(gate: StartGate, turn: number, deadline: number): boolean {
  const end = performance.now() + deadline * 1e3;
  for (;;) {
    const open = Atomics.load(gate, 0);
    // The difference, because the counter wraps around.
    if (((open - turn) | 0) >= 0) return true;
    const left = end - performance.now();
    if (left <= 0) return false;
    Atomics.wait(gate, 0, open, left);
  }
}
