/**
 * What a call takes, as against what NCCL's tuner believes (`tuner.ts`), whose estimates are there to
 * be compared with each other. The tuner chooses; its latency stands, and these are added:
 *
 * - the launch of the kernel;
 * - NVLink at what its packets carry where wires are the limit (Volta's mesh), else the tuner's bus;
 * - a ring's pass over a chunk of two slices cannot send in the half step in which it receives its
 *   last slice, so that 2 (n - 1) steps take half a step more;
 * - NVLS first sums and then spreads, so that one round of chunks is filled before both overlap;
 * - the network at the share of its rate that payload gets.
 */
import { type Bytes, type BytesPerSecond, GBps, KiB, type Seconds, us } from "@trireme/core";
import { type Extent, outside } from "../extent.ts";
import { ringsInside } from "../rings.ts";
import {
  type Generation,
  type NcclAlgorithm,
  type NcclProtocol,
  type TunedOperation,
  ncclProfile,
  nvlinkBandwidth,
  rcclProfile,
} from "./profile.ts";
import { type TunerOptions, type TunerShape, tunerCandidates } from "./tuner.ts";

/**
 * From the call to the first transfer: small all-reduces on 8 H200 take 38 to 40 µs where the tuner
 * says 15 (Bekman: Machine Learning Engineering, network benchmarks, torch on NCCL 2.27).
 */
export const launchLatency: Seconds = us(24);
/** Payload of NVLink 2 and 3: p2pBandwidthLatencyTest, 274.5 of 300 GB/s on A100. */
const nvlinkPayload = 0.915;
/** Payload of InfiniBand and RoCE with 4 KiB packets, as DGX A100 shows: 192 of 200 GB/s. */
export const networkPayload = 0.96;
/** NVLS: channels, and heads (ranks whose chunks are in flight at once). */
const nvlsChannels = 16;

/** A predicted call. */
export interface NcclPrediction {
  readonly time: Seconds;
  readonly algorithm: NcclAlgorithm;
  readonly protocol: NcclProtocol;
}

/** GPU generations by architecture name. */
function generationOf(architecture: string): Generation {
  switch (architecture) {
    case "volta":
    case "turing":
      return "volta";
    case "hopper":
    case "blackwell":
      return architecture;
    default:
      return "ampere";
  }
}

/** The communicator as the tuner sees it. */
export function tunerShape(extent: Extent): TunerShape {
  const { host, ranks, hosts, link } = extent;
  const generation = generationOf(host.accelerator.architecture);
  const inside = link.kind === "nvlink" || link.kind === "xgmi" ? "nvlink" : "pci";
  const { link: perLink, channel } = nvlinkBandwidth[generation];
  const busInside = tunedBus(extent, generation);
  const switched = host.interior?.parts.some((part) => part.kind === "switch") ?? true;
  return {
    ranks,
    hosts,
    generation,
    inside,
    busInside,
    busOutside: hosts > 1 ? outside(extent) : Infinity,
    channels: Math.max(1, Math.floor(busInside / GBps(inside === "nvlink" ? channel : perLink))),
    nvls:
      inside === "nvlink" && switched && (generation === "hopper" || generation === "blackwell"),
  };
}

/** Wires of a mesh, or a link of the host. */
function wires(extent: Extent): BytesPerSecond {
  const { host, inside, link } = extent;
  const rings = host.interior === undefined ? undefined : ringsInside(host.interior, inside);
  return rings === undefined || rings.rings === 0 ? link.bandwidth : rings.rings * rings.bandwidth;
}

/** The bus as NCCL counts it: links at its own figure for the generation. */
function tunedBus(extent: Extent, generation: Generation): BytesPerSecond {
  if (extent.link.kind !== "nvlink") return wires(extent);
  const vendor = GBps(generation === "blackwell" ? 50 : 25);
  return (wires(extent) / vendor) * GBps(nvlinkBandwidth[generation].link);
}

/** The bus a ring reaches. */
function reachedBus(extent: Extent, shape: TunerShape, operation: TunedOperation): BytesPerSecond {
  const { ranks, hosts } = extent;
  const steps = operation === "all-reduce" ? 2 * (ranks - 1) : ranks - 1;
  const perPass = steps / (steps + 0.5);
  const inside =
    extent.link.kind !== "nvlink"
      ? shape.busInside * perPass
      : shape.generation === "volta"
        ? wires(extent) * nvlinkPayload
        : shape.busInside * perPass;
  return hosts === 1 ? inside : Math.min(inside, networkPayload * shape.busOutside);
}

/** The time of a call on GPUs, and what it runs. */
export function predictNccl(
  operation: TunedOperation,
  bytes: Bytes,
  extent: Extent,
  options: TunerOptions = {},
): NcclPrediction {
  const shape = tunerShape(extent);
  const amd = extent.host.accelerator.architecture.startsWith("cdna");
  const profile = options.profile ?? (amd ? rcclProfile : ncclProfile);
  const [best] = tunerCandidates(operation, bytes, shape, { ...options, profile });
  if (best === undefined) return { time: Infinity, algorithm: "ring", protocol: "simple" };
  const { algorithm, protocol, latency } = best;
  let { bandwidth } = best;
  let fill = 0;
  if (algorithm === "ring" && protocol === "simple") {
    const tuned = shape.hosts === 1 ? shape.busInside : Math.min(shape.busInside, shape.busOutside);
    bandwidth *= reachedBus(extent, shape, operation) / tuned;
  }
  if (algorithm === "nvls") fill = Math.min(bytes, nvlsRound(bytes, extent.ranks)) / bandwidth;
  return { time: launchLatency + latency + fill + bytes / bandwidth, algorithm, protocol };
}

/** Bytes in flight in one round of NVLS; NCCL takes smaller chunks for smaller buffers. */
function nvlsRound(bytes: Bytes, ranks: number): Bytes {
  const slots = nvlsChannels * Math.min(ranks, 8);
  let chunk = KiB(128);
  if (bytes < 64 * slots * chunk) chunk = KiB(64);
  if (bytes < 8 * slots * chunk) chunk = KiB(32);
  if (bytes < 2 * slots * chunk) chunk = KiB(16);
  return slots * chunk;
}
