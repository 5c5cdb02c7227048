/** The cluster section resolved: which hosts, how many, and how many devices of each. */
import {
  type Host,
  accelerator,
  cpuHost,
  defineCluster,
  defineLink,
  host,
  type Cluster,
} from "@trireme/topology";
import { GBps, GFLOPS, GiB } from "@trireme/core";
import type { ClusterSection, HostSection } from "./description.ts";
import type { Path } from "./problem.ts";
import type { Resolution } from "./resolution.ts";

/** The machine that runs this, with so many devices. */
export type LocalHost = (devices: number) => Host;

/**
 * A stand-in for this machine where nobody measured it: one core a device, at figures typical of a
 * server core in 2024 with SIMD kernels. Enough to place ranks; a forecast wants `local` passed in.
 */
export const nominalLocalHost: LocalHost = (devices) =>
  cpuHost({
    cores: devices,
    devices,
    peak: GFLOPS(20),
    memory: GiB(4) * devices,
    memoryBandwidth: GBps(10) * devices,
  });

/**
 * The cluster of a run.
 * @param ranks How many devices the plan asks for, when the file leaves their number out.
 */
export function resolveCluster(
  resolution: Resolution,
  written: string | ClusterSection | undefined,
  ranks: number,
  local: LocalHost,
): Cluster | undefined {
  const section: ClusterSection = typeof written === "string" ? { host: written } : (written ?? {});
  if (section.host !== undefined && section.cpu !== undefined) {
    const rule = "give either host or cpu, not both";
    return resolution.problem(["cluster", "cpu"], undefined, rule);
  }
  if (section.hosts !== undefined && section.devices !== undefined) {
    const rule = "give either hosts or devices, not both";
    return resolution.problem(["cluster", "devices"], section.devices, rule);
  }
  const { cpu } = section;
  const name = section.name === undefined ? {} : { name: section.name };
  const path: Path = section.cpu === undefined ? ["cluster", "host"] : ["cluster", "cpu"];
  if (cpu !== undefined || section.host === undefined || section.host === "local") {
    return resolution.attempt(path, undefined, () => {
      const hosts = section.hosts ?? 1;
      const devices = devicesOfCpuHosts(resolution, section, ranks);
      if (devices === undefined) return undefined;
      const one = cpu === undefined ? local(devices) : cpuHost({ ...cpu, devices });
      if (written === undefined) {
        resolution.orElse(["cluster", "host"], undefined, "local", "left out: this machine");
      }
      return defineCluster({ ...name, host: one, hosts });
    });
  }
  const value = typeof section.host === "string" ? section.host : undefined;
  const found = section.host;
  const one = resolution.attempt(path, value, () =>
    typeof found === "string" ? host(found) : ownHost(found),
  );
  if (one === undefined) return undefined;
  const part = hostsOf(resolution, section, one, ranks);
  if (part === undefined) return undefined;
  return resolution.attempt(["cluster"], undefined, () => defineCluster({ ...name, ...part }));
}

function devicesOfCpuHosts(
  resolution: Resolution,
  section: ClusterSection,
  ranks: number,
): number | undefined {
  const hosts = section.hosts ?? 1;
  if (section.hosts !== undefined && ranks % hosts !== 0) {
    const rule = `${ranks} ranks do not fill ${hosts} hosts evenly`;
    return resolution.problem(["cluster", "hosts"], hosts, rule, "give devices");
  }
  return (
    resolution.orElse(["cluster", "devices"], section.devices, ranks, "the plan's ranks") / hosts
  );
}

function ownHost(section: HostSection): Host {
  const chip = accelerator(section.accelerator);
  return {
    name: section.name ?? `${section.accelerators}x${chip.name}`,
    accelerator: chip,
    accelerators: section.accelerators,
    concurrency: section.accelerators,
    link: defineLink(section.link.kind, section.link.bandwidth, section.link.latency),
    network: defineLink("network", section.network.bandwidth, section.network.latency),
  };
}

/** Whole hosts for the devices asked for; fewer devices than a host has take part of one. */
function hostsOf(
  resolution: Resolution,
  section: ClusterSection,
  one: Host,
  ranks: number,
): { host: Host; hosts: number } | undefined {
  const per = one.accelerators;
  if (section.hosts !== undefined) return { host: one, hosts: section.hosts };
  const devices = resolution.orElse(
    ["cluster", "devices"],
    section.devices,
    ranks,
    "the plan's ranks",
  );
  if (devices < per)
    return { host: { ...one, accelerators: devices, concurrency: devices }, hosts: 1 };
  if (devices % per === 0) return { host: one, hosts: devices / per };
  const below = Math.floor(devices / per) * per;
  return resolution.problem(
    ["cluster", "devices"],
    devices,
    `must be a multiple of the ${per} devices of a ${one.name}`,
    `nearest: ${below} or ${below + per}`,
  );
}
