/**
 * The optimizer on the host (ZeRO-Offload, arXiv 2101.06840 §4 and §5): gradients go down and new weights come up
 * the device's way to its processor while the processors of the host, shared by its devices, run through
 * the state in their memory.
 */
import { type BytesPerSecond, GBps, type Seconds } from "@trireme/core";
import type { Accelerator } from "@trireme/topology";
import type { Operator } from "@trireme/workload";
import { withGrace } from "./characteristics.ts";

/** One direction between a device and its processor: PCIe 3, 4 or 5 of 16 lanes less a fifth, or NVLink-C2C. */
function way(a: Accelerator): BytesPerSecond {
  if (withGrace(a)) return GBps(360);
  if (a.architecture === "volta" || a.architecture === "turing") return GBps(12.5);
  return a.architecture === "hopper" || a.architecture.startsWith("blackwell")
    ? GBps(50)
    : GBps(25);
}

/** Two sockets of eight memory channels sustain about this (STREAM on DDR4-3200 and later). */
const hostMemory: BytesPerSecond = GBps(300);

/** Seconds of one update of `op.shape[0]` parameters when `devices` update at once. */
export function hostUpdate(a: Accelerator, op: Operator, devices: number): Seconds {
  const [parameters] = op.shape;
  // Gradients down and weights up, the two directions side by side; the state is what the kernel moves.
  const transfer = (4 * parameters!) / way(a);
  return Math.max(transfer, (op.bytes * devices) / hostMemory);
}
