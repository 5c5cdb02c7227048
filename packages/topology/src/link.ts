/**
 * A link is a way between two devices, as the sender sees it: bandwidth of one direction, and the
 * time for the first byte from device memory to device memory. The latencies of this file are what
 * point-to-point tests show on idle machines, without the software above; a host may state its own.
 */
import { type BytesPerSecond, type Seconds, TriremeError, us } from "@trireme/core";

/**
 * What a link is made of: "local" is a device to itself, "memory" a host's shared memory, "socket" UPI and the like, "roce"
 * Ethernet from device to device.
 */
export type LinkKind =
  | "local"
  | "memory"
  | "nvlink"
  | "xgmi"
  | "xelink"
  | "ici"
  | "roce"
  | "pcie"
  | "socket"
  | "network";

export interface Link {
  readonly kind: LinkKind;
  /** Of one direction. */
  readonly bandwidth: BytesPerSecond;
  readonly latency: Seconds;
}

/** Latency by kind where nothing better is known. */
export const defaultLatency: Readonly<Record<LinkKind, Seconds>> = {
  local: 0,
  memory: us(5),
  nvlink: us(1),
  xgmi: us(1.5),
  xelink: us(1.5),
  ici: us(1),
  roce: us(2.5),
  pcie: us(2),
  socket: us(0.5),
  network: us(5),
};

/**
 * A link with the default latency of its kind, or its own.
 * @throws TriremeError "LINK" when the bandwidth is not positive or the latency is negative.
 */
export function defineLink(
  kind: LinkKind,
  bandwidth: BytesPerSecond,
  latency: Seconds = defaultLatency[kind],
): Link {
  if (!(bandwidth > 0)) {
    throw new TriremeError("LINK", `${kind} link of ${bandwidth} B/s: bandwidth must be above 0`);
  }
  if (!(latency >= 0 && latency < Infinity)) {
    throw new TriremeError("LINK", `${kind} link of ${latency} s: latency must be 0 or more`);
  }
  return { kind, bandwidth, latency };
}
