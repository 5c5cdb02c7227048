/**
 * NCCL's own estimate of every algorithm and protocol, from which it takes the least:
 * latency + bytes / bandwidth, with the corrections of `ncclTopoTuneModel` (tuning.cc).
 */
import { type Bytes, type BytesPerSecond, GBps, type Seconds, us } from "@trireme/core";
import { type NcclEnvironment, allows } from "./environment.ts";
import {
  type Generation,
  type NcclAlgorithm,
  type NcclProtocol,
  type TunedOperation,
  type TunerProfile,
  channelCaps,
  generationRow,
  ll128Share,
  llMostBandwidth,
  ncclAlgorithms,
  ncclProfile,
  ncclProtocols,
  nvlsEfficiency,
} from "./profile.ts";

/** What the tuner knows of a communicator. */
export interface TunerShape {
  readonly ranks: number;
  readonly hosts: number;
  readonly generation: Generation;
  /** Links inside a host. */
  readonly inside: "nvlink" | "pci";
  /** Bus of one rank over all channels, as NCCL counts it: inside a host, and out of a host. */
  readonly busInside: BytesPerSecond;
  readonly busOutside: BytesPerSecond;
  readonly channels: number;
  /** Maker of the hosts' CPUs. Default "amd". */
  readonly cpu?: "intel" | "amd";
  /** Switches that reduce: NVLS inside hosts (Hopper on), SHARP between them. Default false. */
  readonly nvls?: boolean;
  readonly sharp?: boolean;
  /**
   * What the network's plugin states as its latency, NCCL's `latencyInter`, on top of NCCL's figure for
   * a hop; Simple pays it again for the flush. Default 0, as the plugin for InfiniBand says.
   */
  readonly networkLatency?: Seconds;
}

/** One estimate. `bandwidth` is the algorithm bandwidth: bytes of the buffer per second. */
export interface Candidate {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: NcclProtocol;
  readonly latency: Seconds;
  readonly bandwidth: BytesPerSecond;
  readonly time: Seconds;
}

/** Options of the tuner. */
export interface TunerOptions {
  readonly profile?: TunerProfile;
  /** `NCCL_ALGO` and `NCCL_PROTO`, parsed by `ncclEnvironment`. */
  readonly environment?: NcclEnvironment;
}

/** All estimates for one call, the least first; those NCCL would not run are left out. */
export function tunerCandidates(
  operation: TunedOperation,
  bytes: Bytes,
  shape: TunerShape,
  options: TunerOptions = {},
): Candidate[] {
  const { profile = ncclProfile, environment } = options;
  const all: Candidate[] = [];
  for (const algorithm of ncclAlgorithms) {
    if (!runs(operation, algorithm, shape)) continue;
    for (const protocol of ncclProtocols) {
      if (environment !== undefined && !allows(environment, operation, algorithm, protocol)) {
        continue;
      }
      const bandwidth = bandwidthOf(operation, bytes, algorithm, protocol, shape, profile);
      if (!(bandwidth > 0)) continue;
      const latency = latencyOf(operation, bytes, algorithm, protocol, shape, profile);
      const time = latency + bytes / bandwidth;
      all.push({ algorithm, protocol, latency, bandwidth, time });
    }
  }
  return all.toSorted((a, b) => a.time - b.time);
}

function runs(operation: TunedOperation, algorithm: NcclAlgorithm, shape: TunerShape): boolean {
  const { ranks, hosts, nvls = false, sharp = false } = shape;
  switch (algorithm) {
    case "ring":
      return true;
    case "tree":
      return operation === "all-reduce";
    case "collnet-direct":
    case "collnet-chain":
      return operation === "all-reduce" && sharp && hosts > 1;
    case "nvls":
      return operation === "all-reduce" && nvls && ranks / hosts > 1 && (hosts === 1 || sharp);
    case "nvls-tree":
      return operation === "all-reduce" && nvls && ranks / hosts > 1 && hosts > 1;
    case "pat":
      return (operation === "all-gather" || operation === "reduce-scatter") && ranks === hosts;
  }
}

/** Steps of a ring, as the tuner counts them. */
export function ringSteps(operation: TunedOperation, ranks: number): number {
  if (operation === "all-reduce") return 2 * (ranks - 1);
  return operation === "broadcast" || operation === "reduce" ? ranks : ranks - 1;
}

function correction(table: readonly number[] | undefined, bytes: Bytes): number {
  const at = Math.floor(Math.log2(Math.max(1, Math.floor(bytes / 64))));
  return table?.[at] ?? 1;
}

function bandwidthOf(
  operation: TunedOperation,
  bytes: Bytes,
  algorithm: NcclAlgorithm,
  protocol: NcclProtocol,
  shape: TunerShape,
  profile: TunerProfile,
): BytesPerSecond {
  const { ranks, hosts, generation, channels, cpu = "amd" } = shape;
  const byHosts = hosts === 1 ? 0 : hosts === 2 ? 1 : 2;
  const caps = channelCaps[generation];
  const cap = (perChannel: readonly [number, number, number]): BytesPerSecond =>
    GBps(channels * perChannel[byHosts]);
  let bus = hosts === 1 ? shape.busInside : Math.min(shape.busInside, shape.busOutside);
  if (algorithm !== "ring" && algorithm !== "tree" && protocol !== "simple") return 0;
  if (profile.busShare !== undefined) {
    bus *= profile.busShare[hosts <= 2 ? 0 : 1][algorithm]?.[protocol] ?? 0;
    const table = algorithm === "tree" ? profile.treeCorrection : profile.ringCorrection;
    bus *= correction(table?.[protocol], bytes);
    return bus * (algorithm === "ring" ? ranks / ringSteps(operation, ranks) : 0.5);
  }
  if (protocol === "ll128" && shape.inside !== "nvlink") return 0;
  const row = hosts === 1 ? generationRow[generation] : cpu === "intel" ? 0 : 1;
  const llMost = GBps(llMostBandwidth[row]![byHosts]);
  switch (algorithm) {
    case "ring":
      if (protocol === "ll") bus = Math.min(llMost, bus / 2);
      if (protocol === "ll128") bus = Math.min(ll128Share * bus, cap(caps.ringLl128));
      return (bus * ranks) / ringSteps(operation, ranks);
    case "tree":
      bus = Math.min(0.92 * bus, cap(caps.tree));
      if (protocol === "ll") bus = Math.min(bus / 3.8, llMost);
      if (protocol === "ll128") {
        bus = Math.min(bus * (hosts === 1 ? 7 / 9 : 120 / 128), cap(caps.treeLl128));
      }
      return bus * 0.5 * correction(profile.treeCorrection[protocol], bytes);
    case "nvls": {
      // Of the buffer, what a rank keeps for itself takes no part.
      const share = nvlsEfficiency[generation];
      const inside = share * shape.busInside * ((ranks / hosts - 1) / (ranks / hosts));
      return hosts === 1 ? inside : Math.min(inside, shape.busOutside);
    }
    case "nvls-tree": {
      const outside = hosts <= 2 ? 2 * shape.busOutside : shape.busOutside;
      const most = Math.min(nvlsEfficiency[generation] * shape.busInside, outside);
      return 0.5 * Math.min(most, cap(caps.nvlsTree));
    }
    case "collnet-direct":
    case "collnet-chain":
      return bus * (generation === "hopper" || generation === "blackwell" ? 0.85 : 1);
    case "pat":
      return (0.75 * bus * ranks) / ringSteps(operation, ranks);
  }
}

function latencyOf(
  operation: TunedOperation,
  bytes: Bytes,
  algorithm: NcclAlgorithm,
  protocol: NcclProtocol,
  shape: TunerShape,
  profile: TunerProfile,
): Seconds {
  const { ranks, hosts, channels, cpu = "amd", networkLatency = 0 } = shape;
  const inside = us(
    (profile[shape.inside][algorithm] ?? profile.nvlink[algorithm])?.[protocol] ?? 0,
  );
  const stated = protocol === "simple" ? 2 * networkLatency : networkLatency;
  const outside = us(profile.net[algorithm]?.[protocol] ?? 0) + stated;
  const base = us(profile.base[algorithm]?.[protocol] ?? 0);
  const perHost = ranks / hosts;
  switch (algorithm) {
    case "ring": {
      const steps = ringSteps(operation, ranks);
      const between =
        hosts === 1 ? 0 : operation === "all-reduce" ? 2 * (hosts - 1) : Math.min(steps, hosts - 1);
      const overhead =
        hosts === 1 ? 0 : us(cpu === "intel" ? 1 : 2) * (protocol === "simple" ? 3 : 1);
      const latency = base + (steps - between) * Math.max(inside, overhead) + between * outside;
      const long = bytes / (channels * ranks) >= 64;
      return hosts > 1 && protocol === "simple" && operation === "all-reduce" && long
        ? latency * (shape.generation === "volta" ? 1.9 : 1.4)
        : latency;
    }
    case "tree":
      return base + 2 * ((perHost - 1) * inside + Math.log2(hosts) * outside);
    case "collnet-direct":
      return base + 2 * (Math.min(1, perHost - 1) * inside + (perHost - 1) * us(0.4)) + outside;
    case "collnet-chain":
      return base + 2 * (perHost - 1) * inside + outside;
    case "nvls":
      return base + inside + (hosts > 1 ? outside : 0);
    case "nvls-tree":
      return base + inside + 2 * Math.log2(hosts) * outside;
    case "pat":
      return base + (Math.log2(hosts) * outside) / 3.5 + us(2.8) * ranks;
  }
}
