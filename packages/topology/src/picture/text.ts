/** A cluster as a tree of text: fabric layer by layer, hosts pool by pool, counts and bandwidths. */
import { formatBandwidth, formatBytes, formatFlopRate } from "@trireme/core";
import type { Cluster } from "../cluster.ts";
import { type Fabric, linkStates } from "../fabric/fabric.ts";
import type { Host } from "../host.ts";
import { nicOf, nicsOf, pairLink } from "../host-ways.ts";
import { numaOf } from "../interior.ts";
import { cableRows, grouped } from "./cable-rows.ts";

interface Branch {
  readonly text: string;
  readonly branches: readonly Branch[];
}

/** The picture of a cluster; lines end in "\n". */
export function clusterPicture(cluster: Cluster): string {
  const branches: Branch[] = cluster.fabric ? [fabricBranch(cluster.fabric)] : [];
  for (const pool of cluster.pools) branches.push(hostBranch(pool.host, pool.hosts));
  const text = `${cluster.name}: ${plural(cluster.hosts, "host")}, ${plural(cluster.devices, "device")}`;
  return `${draw({ text, branches }).join("\n")}\n`;
}

function draw({ text, branches }: Branch): string[] {
  const lines = [text];
  for (const [i, branch] of branches.entries()) {
    const last = i === branches.length - 1;
    for (const [j, line] of draw(branch).entries()) {
      const rail = j === 0 ? (last ? "└─ " : "├─ ") : last ? "   " : "│  ";
      lines.push(rail + line);
    }
  }
  return lines;
}

/** Layers from the top, each with its cables down. */
function fabricBranch(fabric: Fabric): Branch {
  const { graph, layers, state } = fabric;
  const states = new Uint32Array(linkStates.length);
  for (let c = 0; c < graph.cables; c++) states[state[c]!]!++;
  const rows = cableRows(fabric);
  const branches = layers
    .map(({ name, switches }, l) => ({
      text: `${name}: ${plural(switches, "switch")}; ${rows[l + 1]!.join(", ")}`,
      branches: [],
    }))
    .toReversed();
  const worn = linkStates.flatMap((s, i) =>
    i > 0 && states[i]! > 0 ? [`${grouped(states[i]!)} ${s}`] : [],
  );
  const health = worn.length > 0 ? `; ${worn.join(", ")}` : "";
  const text = `fabric ${fabric.name}: ${plural(graph.endpoints, "port")}, ${plural(graph.cables, "cable")}${health}`;
  return { text, branches };
}

function hostBranch(host: Host, count: number): Branch {
  const { accelerator: a, accelerators } = host;
  const precision =
    a.peak.bf16 === undefined ? (a.peak.fp16 === undefined ? "fp32" : "fp16") : "bf16";
  const peak = a.peak[precision];
  const branches: Branch[] = [
    {
      text: `${accelerators} x ${a.name}: ${peak === undefined ? "" : `${formatFlopRate(peak)} ${precision}, `}${formatBytes(a.memory)} at ${formatBandwidth(a.memoryBandwidth)}`,
      branches: [],
    },
  ];
  const pairs = pairKinds(host);
  if (pairs.length > 0) branches.push({ text: `between them: ${pairs.join(", ")}`, branches: [] });
  if (host.scaleUpHosts) {
    const { kind, bandwidth } = host.link;
    branches.push({
      text: `${plural(host.scaleUpHosts, "host")} joined by ${kind}, ${formatBandwidth(bandwidth)}`,
      branches: [],
    });
  }
  branches.push({
    text: `${plural(nicsOf(host), "NIC")}: ${formatBandwidth(host.network.bandwidth)} a device`,
    branches: numaBranches(host),
  });
  return { text: `${grouped(count)} x ${host.name}`, branches };
}

/** Pairs of devices by kind and bandwidth of their way, the widest first. */
function pairKinds(host: Host): string[] {
  const kinds = new Map<string, { bandwidth: number; kind: string; pairs: number }>();
  for (let a = 0; a < host.accelerators; a++) {
    for (let b = a + 1; b < host.accelerators; b++) {
      const { kind, bandwidth } = pairLink(host, a, b);
      const row = kinds.get(`${kind} ${bandwidth}`);
      if (row) row.pairs++;
      else kinds.set(`${kind} ${bandwidth}`, { kind, bandwidth, pairs: 1 });
    }
  }
  return [...kinds.values()]
    .toSorted((x, y) => y.bandwidth - x.bandwidth)
    .map((k) => `${plural(k.pairs, "pair")} of ${formatBandwidth(k.bandwidth)} ${k.kind}`);
}

/** Devices of each NUMA domain with the NICs that they use. */
function numaBranches(host: Host): Branch[] {
  if (!host.interior) return [];
  const members = new Map<number, number[]>();
  for (let d = 0; d < host.accelerators; d++) {
    const numa = numaOf(host.interior, d);
    if (numa === undefined) continue;
    members.set(numa, [...(members.get(numa) ?? []), d]);
  }
  return [...members]
    .toSorted(([x], [y]) => x - y)
    .map(([numa, devices]) => {
      const nics = [...new Set(devices.map((d) => nicOf(host, d)))].toSorted((x, y) => x - y);
      const listed = (noun: string, of: readonly number[]): string =>
        `${noun}${of.length === 1 ? "" : "s"} ${of.join(" ")}`;
      const text = `NUMA ${numa}: ${listed("device", devices)}, ${listed("NIC", nics)}`;
      return { text, branches: [] };
    });
}

function plural(n: number, noun: string): string {
  const plurals = noun === "switch" ? "switches" : `${noun}s`;
  return `${grouped(n)} ${n === 1 ? noun : plurals}`;
}
