/** The cluster of a corpus row. */
import { type ElasticFabric, elasticFabric } from "@trireme/collectives";
import { GBps, Gbps, TBps } from "@trireme/core";
import {
  type Accelerator,
  type Cluster,
  type Host,
  accelerators,
  accelerator,
  defineCluster,
  defineLink,
  hosts,
} from "@trireme/topology";
import { type CorpusRow, number, text } from "./corpus-row.ts";

/** Beginnings of the corpus's names in lower case, and the catalogue's names; the first that fits. */
const names: readonly (readonly [string, string])[] = [
  ["a100-sxm-80", "a100-80"],
  ["a100-sxm-40", "a100-40"],
  ["a100-pcie", "a100-pcie-80"],
  ["a800", "a800-80"],
  ["h100-pcie", "h100-pcie"],
  ["h100", "h100"],
  ["h800", "h800"],
  ["h200-nvl", "h200-nvl"],
  ["h200", "h200"],
  ["h20", "h20"],
  ["gh200", "gh200"],
  ["gb200", "gb200"],
  ["gb300", "gb300"],
  ["b200", "b200"],
  ["b300", "b300"],
  ["v100", "v100-32"],
  ["l40s", "l40s"],
  ["mi300x", "mi300x"],
  ["mi325x", "mi325x"],
  ["mi350x", "mi350x"],
  ["mi355x", "mi355x"],
  ["mi250", "mi250x"],
  ["gaudi2", "gaudi2"],
  ["gaudi3", "gaudi3"],
  ["tpu-v3", "tpu-v3"],
  ["tpu-v4", "tpu-v4"],
  ["tpu-v5p", "tpu-v5p"],
  ["tpu-v5e", "tpu-v5e"],
  ["tpu-v6e", "tpu-v6e"],
  ["tpu-trillium", "tpu-v6e"],
  ["tpu-v7", "tpu-v7"],
];

/** A name without its vendor and what marks a brand: "Intel(R) Gaudi(R) 2 AI Accelerator" and "Habana Gaudi2" are one. */
function plainName(gpu: string): string {
  return gpu
    .toLowerCase()
    .replaceAll("(r)", "")
    .replace(/^(amd instinct|nvidia|intel|habana) /, "")
    .replace(/^gaudi +/, "gaudi");
}

/** The catalogue's accelerator for a name of the corpus; undefined when it has none. */
export function acceleratorOf(gpu: string): Accelerator | undefined {
  const found = names.find(([start]) => plainName(gpu).startsWith(start));
  if (found === undefined || !accelerators.some((a) => a.name === found[1])) return undefined;
  const a = accelerator(found[1]);
  // A part with slower memory, a lower power limit and so a lower clock under load.
  if (/hbm2e/i.test(gpu)) {
    return { ...a, name: "h100-hbm2e", memory: 96 * 2 ** 30, memoryBandwidth: TBps(2.4), tdp: 500 };
  }
  return a;
}

/** Why a row's accelerator is not known: its source names none, or the catalogue has none of this name. */
export function unknownAccelerator(gpu: string): string {
  return /^(unknown|unnamed|$)/i.test(gpu)
    ? "missing: gpu"
    : `accelerator not in the catalogue: ${gpu}`;
}

/** The family by which iteration times are scored; undefined for others. */
export function familyOf(a: Accelerator): "h100" | "a100" | undefined {
  if (a.architecture === "hopper") return "h100";
  return a.architecture === "ampere" && /^a[18]00/.test(a.name) ? "a100" : undefined;
}

/**
 * Gbit/s of the network per device. Where a source states the network but not the ports per host,
 * what it states is one port: sends without sequence parallelism, which every device of a host makes
 * at once, take as long as that.
 */
function portRate(row: CorpusRow, perHost: number): number | undefined {
  const stated = number(row.hardware, "inter_gbps");
  if (stated === undefined) return undefined;
  return text(row.hardware, "net_source").includes("count not stated") ? stated / perHost : stated;
}

/** AWS's network, where the row says that it ran over it. */
export function elasticFabricOf(row: CorpusRow): ElasticFabric | undefined {
  const source = text(row.hardware, "net_source");
  if (!/\befa\b/i.test(source)) return undefined;
  const families = ["p3dn", "p4d", "p5en", "p6-b200", "p6-b300", "p5"] as const;
  const family = families.find((name) => source.toLowerCase().includes(name));
  return family === undefined ? undefined : elasticFabric[family];
}

/**
 * Devices of a host, and of all hosts that one scale-up fabric joins, which is what most rows call a node. Of TPUs they state the
 * host, whose chips are a few of a slice's.
 */
function layoutOf(
  row: CorpusRow,
  a: Accelerator,
  like: Host | undefined,
  devices: number,
): { readonly domain: number; readonly perHost: number } {
  const stated = number(row.hardware, "gpus_per_node");
  if (a.kind === "tpu" && like !== undefined) {
    const perHost = Math.min(devices, stated ?? like.accelerators);
    return { domain: like.accelerators * (like.scaleUpHosts ?? 1), perHost };
  }
  const domain = stated ?? 8;
  return { domain, perHost: Math.min(devices, number(row.hardware, "host_gpus") ?? domain) };
}

/** The row's cluster, or the name of what is missing. */
export function clusterOf(row: CorpusRow): Cluster | string {
  const stated = text(row.hardware, "gpu");
  const a = acceleratorOf(stated);
  if (a === undefined) return unknownAccelerator(stated);
  const devices = number(row.hardware, "num_gpus");
  if (devices === undefined) return "missing: num_gpus";
  const like = hosts.find((h) => h.accelerator.name === a.name);
  const { domain, perHost } = layoutOf(row, a, like, devices);
  const intra = number(row.hardware, "intra_gbs");
  const inter = portRate(row, domain);
  const link = intra === undefined ? like?.link : defineLink("nvlink", GBps(intra));
  const network =
    inter === undefined
      ? like?.network
      : defineLink("network", Gbps(inter), elasticFabricOf(row)?.latency);
  if (link === undefined && devices > 1) return "missing: intra_gbs";
  if (network === undefined && devices > domain) return "missing: inter_gbps";
  const fallback = defineLink("network", Gbps(100));
  const host: Host = {
    name: a.name,
    accelerator: a,
    accelerators: perHost,
    concurrency: perHost,
    link: link ?? fallback,
    network: network ?? fallback,
    ...(domain > perHost ? { scaleUpHosts: Math.ceil(domain / perHost) } : {}),
  };
  return defineCluster({ host, hosts: Math.ceil(devices / perHost) });
}
