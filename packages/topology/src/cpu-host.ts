/**
 * The machine under our feet: a host whose devices are threads that share its cores and memory.
 * Memory and its bandwidth are the whole host's; a device gets the share that is left to it when
 * all cores are busy. A message between two devices is a copy through memory, which reads and
 * writes each byte once, so a link carries half of what a device can move.
 */
import {
  type Bytes,
  type BytesPerSecond,
  type FlopsPerSecond,
  type Seconds,
  Gbps,
  MiB,
  TriremeError,
  us,
} from "@trireme/core";
import type { Host } from "./host.ts";
import { defineLink } from "./link.ts";

export interface CpuHostOptions {
  /** Cores that compute at once. */
  readonly cores: number;
  /** Threads that act as devices; one per core when left out. */
  readonly devices?: number;
  /** fp32 of one core. */
  readonly peak: FlopsPerSecond;
  /** Of the whole host. */
  readonly memory: Bytes;
  /** Of the whole host. */
  readonly memoryBandwidth: BytesPerSecond;
  /** Between two devices, where it was measured; when left out, copies at a device's share of the memory bandwidth. */
  readonly link?: { readonly bandwidth: BytesPerSecond; readonly latency: Seconds };
  /** The host's network port; 10 Gbit/s when left out. */
  readonly network?: BytesPerSecond;
}

/**
 * A host that computes on its cores.
 * @throws TriremeError "HOST" when a count is not a positive integer or a rate not above 0.
 */
export function cpuHost(options: CpuHostOptions): Host {
  const {
    cores,
    devices = cores,
    peak,
    memory,
    memoryBandwidth,
    network = Gbps(10),
    link,
  } = options;
  for (const [name, value] of Object.entries({ cores, devices })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new TriremeError("HOST", `cpuHost: ${name} is ${value}; use an integer from 1 up`);
    }
  }
  for (const [name, value] of Object.entries({ peak, memory, memoryBandwidth, network })) {
    if (!(value > 0 && value < Infinity)) {
      throw new TriremeError("HOST", `cpuHost: ${name} is ${value}; it must be above 0`);
    }
  }
  const share = memoryBandwidth / Math.min(cores, devices);
  return {
    name: `cpu-${cores}`,
    accelerator: {
      name: "cpu-core",
      kind: "cpu",
      architecture: "generic",
      // A vector unit holds half as many doubles as floats.
      peak: { fp64: peak / 2, fp32: peak },
      memory: memory / devices,
      memoryBandwidth: share,
      l2: MiB(2),
      multiprocessors: 1,
      scaleUp: 0,
      tdp: 10,
      idlePower: 2,
      source: "cpuHost: given by the caller; cache and power are those of a generic server core",
    },
    accelerators: devices,
    concurrency: cores,
    link: defineLink("memory", link?.bandwidth ?? share / 2, link?.latency),
    network: defineLink("network", network / devices, us(30)),
    nics: 1,
  };
}

/** What a core's vector units can do, where it was not measured. */
export interface CoreOptions {
  /** Hertz, under vector load. */
  readonly clock: number;
  /** Width of a vector register in bits: 128, 256 or 512. */
  readonly simd: number;
  /** Fused multiply-adds that start in one cycle. */
  readonly multiplyAdds: number;
}

/**
 * fp32 peak of one core: clock x lanes x multiply-adds x 2.
 * @throws TriremeError "HOST" when a figure is not above 0 or the width not a multiple of 32.
 */
export function corePeak(core: CoreOptions): FlopsPerSecond {
  const { clock, simd, multiplyAdds } = core;
  if (!(clock > 0 && simd > 0 && multiplyAdds > 0) || simd % 32 !== 0) {
    throw new TriremeError(
      "HOST",
      `corePeak: ${clock} Hz, ${simd} bits, ${multiplyAdds} multiply-adds; all must be above 0, bits a multiple of 32 such as 256`,
    );
  }
  return clock * (simd / 32) * multiplyAdds * 2;
}
