export {
  type Bytes,
  type BytesPerSecond,
  type Flops,
  type FlopsPerSecond,
  type Joules,
  type Seconds,
  type Watts,
  days,
  GB,
  GBps,
  Gbps,
  GFLOPS,
  GiB,
  hours,
  KB,
  KiB,
  MB,
  MiB,
  minutes,
  ms,
  ns,
  PFLOPS,
  TB,
  TBps,
  TFLOPS,
  TiB,
  us,
} from "./units.ts";
export {
  formatBandwidth,
  formatBytes,
  formatCount,
  formatEnergy,
  formatFlopRate,
  formatPercent,
  formatPower,
  formatSeconds,
} from "./format.ts";
export { type Rng, createRng, hash32 } from "./random.ts";
export { EventQueue } from "./event-queue.ts";
export { Heap } from "./heap.ts";
export { median } from "./median.ts";
export { nearestDivisor, nearestName } from "./nearest.ts";
export { TriremeError } from "./error.ts";
export { missingPeer } from "./missing-peer.ts";
