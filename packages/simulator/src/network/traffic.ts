/** Traffic that is put on a cluster, and changes of its cables meanwhile. */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";

/** Traffic from one device to another. */
export interface TrafficFlow {
  readonly from: number;
  readonly to: number;
  readonly bytes: Bytes;
  /** When it starts; 0 when left out. */
  readonly start?: Seconds;
  /** What it is a part of: a collective, say. 0 when left out. */
  readonly group?: number;
}

/** A cable of the fabric carries another part of its bandwidth from a time on: 1 whole, 0 down. */
export interface CableChange {
  readonly at: Seconds;
  readonly cable: number;
  readonly fraction: number;
}

/** Throws TriremeError "FLOW" for a flow with a size or start that is none, "LINK_STATE" for a change of no cable. */
export function checkTraffic(
  flows: readonly TrafficFlow[],
  changes: readonly CableChange[],
  cables: number,
): void {
  for (const [i, { bytes, start = 0 }] of flows.entries()) {
    if (!(bytes >= 0 && bytes < Infinity && start >= 0 && start < Infinity)) {
      throw new TriremeError(
        "FLOW",
        `flow ${i} of ${bytes} bytes from ${start} s: give finite numbers from 0 up`,
      );
    }
  }
  for (const { at, cable, fraction } of changes) {
    const known = Number.isInteger(cable) && cable >= 0 && cable < cables;
    if (!known || !(fraction >= 0 && fraction <= 1) || !(at >= 0 && at < Infinity)) {
      throw new TriremeError(
        "LINK_STATE",
        `cable ${cable} to ${fraction} at ${at} s: name a cable in 0..${cables - 1}, a fraction in 0..1 and a time from 0 up`,
      );
    }
  }
}
