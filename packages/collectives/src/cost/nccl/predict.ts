/**
 * What a call takes, as against what NCCL's tuner believes (`tuner.ts`), whose estimates are there to
 * be compared with each other. Its latencies stand, and these are added:
 *
 * - the launch of the kernel, unless calls are queued back to back, and the host's work, see `host-launch.ts`;
 * - NVLink at what its packets carry where wires are the limit (Volta's mesh), else the tuner's bus;
 * - a ring's pass over a chunk of two slices cannot send in the half step in which it receives its
 *   last slice, so that 2 (n - 1) steps take half a step more;
 * - LL at the share of the bus that NCCL gave it when Volta and Ampere were new;
 * - the rounds of chunks of NVLS, see `nvls.ts`;
 * - the network at the share of its rate that payload gets, and the latency that its plugin states.
 *
 * The tuner chooses. Near a switch its estimate and this one differ by a few per cent, and a faster
 * link could make it choose what is slower here; the least that any of its choices takes is then given,
 * so that time never rises with bandwidth.
 */
import { type Bytes, type BytesPerSecond, GBps, type Seconds, us } from "@trireme/core";
import { type Link, defaultLatency } from "@trireme/topology";
import { type Extent, outside } from "../extent.ts";
import { ringsInside } from "../rings.ts";
import {
  type Generation,
  type NcclAlgorithm,
  type NcclProtocol,
  type TunedOperation,
  ll128Share,
  ncclProfile,
  nvlinkBandwidth,
  rcclProfile,
} from "./profile.ts";
import { hostTime } from "./host-launch.ts";
import { nvlsTime } from "./nvls.ts";
import {
  type Candidate,
  type TunerOptions,
  type TunerShape,
  ringSteps,
  tunerCandidates,
} from "./tuner.ts";

/**
 * From the call to the first transfer: small all-reduces on 8 H200 take 38 to 40 µs where the tuner
 * says 15 (Bekman: Machine Learning Engineering, network benchmarks, torch on NCCL 2.27).
 */
export const launchLatency: Seconds = us(24);
/** Payload of NVLink 2 and 3: p2pBandwidthLatencyTest, 274.5 of 300 GB/s on A100. */
const nvlinkPayload = 0.915;
/** Payload of InfiniBand and RoCE with 4 KiB packets, as DGX A100 shows: 192 of 200 GB/s. */
export const networkPayload = 0.96;
/** LL's share of the bus until NCCL 2.26 (tuning.cc); the half of today was measured on Hopper. */
const olderLlShare = 1 / 4;

/** Share of a link's rate that a message from device to device has: on NVLink 4 and 5 NCCL's figure of one link over its 25 and 50 GB/s. */
export function messagePayload(kind: Link["kind"], architecture: string): number {
  if (kind !== "nvlink") return 1;
  const generation = generationOf(architecture);
  if (generation === "volta" || generation === "ampere") return nvlinkPayload;
  return nvlinkBandwidth[generation].link / vendorLink(generation);
}

/** One NVLink in one direction, GB/s, as NVIDIA prints it. */
function vendorLink(generation: Generation): number {
  return generation === "blackwell" ? 50 : 25;
}

/** A predicted call; algorithm and protocol are the tuner's choice. */
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
  const { host, ranks, hosts, link, network } = extent;
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
    networkLatency: hosts > 1 ? Math.max(0, network.latency - defaultLatency.network) : 0,
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
  const vendor = GBps(vendorLink(generation));
  return (wires(extent) / vendor) * GBps(nvlinkBandwidth[generation].link);
}

/** The bus a ring reaches. */
function reachedBus(extent: Extent, shape: TunerShape, operation: TunedOperation): BytesPerSecond {
  const { ranks, hosts } = extent;
  const count = ringSteps(operation, ranks);
  const perPass = count / (count + 0.5);
  const inside =
    extent.link.kind !== "nvlink"
      ? shape.busInside * perPass
      : shape.generation === "volta"
        ? wires(extent) * nvlinkPayload
        : shape.busInside * perPass;
  return hosts === 1 ? inside : Math.min(inside, networkPayload * shape.busOutside);
}

/** Options of `predictNccl`. */
export interface PredictionOptions extends TunerOptions {
  /** Whether calls follow each other without a wait, so that launches hide behind the calls before. */
  readonly queued?: boolean;
  /** Devices that one host thread launches on; see `host-launch.ts`. Default 1. */
  readonly devicesPerThread?: number;
}

/** The time of a call on GPUs, and what it runs. */
export function predictNccl(
  operation: TunedOperation,
  bytes: Bytes,
  extent: Extent,
  options: PredictionOptions = {},
): NcclPrediction {
  const shape = tunerShape(extent);
  const amd = extent.host.accelerator.architecture.startsWith("cdna");
  const profile = options.profile ?? (amd ? rcclProfile : ncclProfile);
  const candidates = tunerCandidates(operation, bytes, shape, { ...options, profile });
  const [best] = candidates;
  if (best === undefined) return { time: Infinity, algorithm: "ring", protocol: "simple" };
  let time = Infinity;
  for (const candidate of candidates) {
    time = Math.min(time, timeOf(candidate, operation, bytes, extent, shape));
  }
  const { algorithm, protocol } = best;
  const { queued = false, devicesPerThread: devices = 1 } = options;
  const { ranks, channels } = shape;
  const host = hostTime({ algorithm, protocol, bytes, ranks, channels, devices });
  // What is queued waits for the host or for the devices, the rest for the last device's launch.
  const whole = queued ? Math.max(host, time) : Math.max(host, launchLatency) + time;
  return { time: whole, algorithm, protocol };
}

function timeOf(
  { algorithm, protocol, latency, bandwidth }: Candidate,
  operation: TunedOperation,
  bytes: Bytes,
  extent: Extent,
  shape: TunerShape,
): Seconds {
  const { generation, hosts, busInside, busOutside, ranks } = shape;
  const tuned = hosts === 1 ? busInside : Math.min(busInside, busOutside);
  if (algorithm === "nvls" || algorithm === "nvls-tree") {
    return nvlsTime({ bytes, latency, bandwidth, generation, hosts, perHost: ranks / hosts });
  }
  if (algorithm === "ring" && protocol !== "ll") {
    const reached = reachedBus(extent, shape, operation);
    if (protocol === "simple") return latency + bytes / bandwidth / (reached / tuned);
    // LL128 passes whole lines on, and has no more of the wires or its channels than the tuner says.
    const perByte = ringSteps(operation, ranks) / ranks / (ll128Share * reached);
    return latency + bytes * Math.max(1 / bandwidth, perByte);
  }
  const older = generation === "volta" || generation === "ampere";
  if (algorithm === "ring" && protocol === "ll" && older && extent.link.kind === "nvlink") {
    const perByte = ringSteps(operation, ranks) / ranks / (olderLlShare * tuned);
    return latency + bytes * Math.max(1 / bandwidth, perByte);
  }
  return latency + bytes / bandwidth;
}
