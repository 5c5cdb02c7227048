/**
 * Congestion control as convergence of rates. After each change of the traffic a flow's rate moves
 * exponentially from what it was to its max-min fair share: quickly down, where packets are marked or
 * late, and up as its control probes for more. A flow that has less than its share loses that time; one
 * that has more gets no more through the bottleneck than its share, but fills queues; where a link is
 * shared, marks and pauses keep the control a little below it.
 *
 * The profiles have the time constants of the controls' published parameters: DCQCN (Zhu et al., SIGCOMM
 * 2015: recovery by halves of the gap every 55 µs for five rounds, then in small steps) and Swift (Kumar
 * et al., SIGCOMM 2020: a step each round trip, at most one decrease each). MegaScale (NSDI 2024, §3.6)
 * takes Swift's round-trip measure for precision and DCQCN's marks for speed of reaction. How far below
 * a full link each settles is an assumption of ours.
 */
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";

/** A congestion control. */
export interface CongestionControl {
  readonly name: string;
  /** Time constant of rising to a larger share; 0: at once. */
  readonly rise: Seconds;
  /** Rate of a new flow, of its line's. */
  readonly start: number;
  /** What of a shared link it uses, above 0 and at most 1. */
  readonly efficiency: number;
}

/** Max-min fair rates at once: no transient and no loss. */
export const idealControl: CongestionControl = { name: "ideal", rise: 0, start: 1, efficiency: 1 };

/** New flows start at line rate; recovery is slow. */
export const dcqcnControl: CongestionControl = {
  name: "dcqcn",
  rise: 5 * 55e-6,
  start: 1,
  efficiency: 0.93,
};

/** Delay steers precisely; rates rise by a step each round trip. */
export const swiftControl: CongestionControl = {
  name: "swift",
  rise: 150e-6,
  start: 1,
  efficiency: 0.97,
};

/** Both: marks to react, delay to settle. */
export const megascaleControl: CongestionControl = {
  name: "megascale",
  rise: 55e-6,
  start: 1,
  efficiency: 0.97,
};

/** Throws TriremeError "CONGESTION" for numbers that no control has. */
export function checkControl(c: CongestionControl): void {
  const ok = c.rise >= 0 && c.start > 0 && c.start <= 1 && c.efficiency > 0 && c.efficiency <= 1;
  if (ok && c.rise < Infinity) return;
  throw new TriremeError(
    "CONGESTION",
    `${c.name}: rise ${c.rise} s, start ${c.start}, efficiency ${c.efficiency}; give a rise from 0 up, the others above 0 and at most 1`,
  );
}

/** Rate after `time` of a flow that had `from` when its share became `share`. */
export function rateAfter(
  c: CongestionControl,
  from: BytesPerSecond,
  share: BytesPerSecond,
  time: Seconds,
): BytesPerSecond {
  if (from >= share || c.rise === 0) return share;
  return share + (from - share) * Math.exp(-time / c.rise);
}

/** Bytes that the flow has sent by then. */
export function sentAfter(
  c: CongestionControl,
  from: BytesPerSecond,
  share: BytesPerSecond,
  time: Seconds,
): number {
  if (from >= share || c.rise === 0) return share * time;
  return share * time + (from - share) * c.rise * (1 - Math.exp(-time / c.rise));
}

/** Time that the flow needs for `bytes`; Infinity without a share. */
export function timeFor(
  c: CongestionControl,
  from: BytesPerSecond,
  share: BytesPerSecond,
  bytes: number,
): Seconds {
  if (share === 0) return Infinity;
  let time = bytes / share;
  if (from >= share || c.rise === 0) return time;
  // Sent bytes are convex in time, so that Newton's steps from above come down to the root.
  time += ((share - from) * c.rise) / share;
  for (let i = 0; i < 50; i++) {
    const step =
      (sentAfter(c, from, share, time) - bytes) /
      Math.max(rateAfter(c, from, share, time), share * 1e-9);
    time = Math.max(0, time - step);
    if (Math.abs(step) <= 1e-12 * time) break;
  }
  return time;
}
