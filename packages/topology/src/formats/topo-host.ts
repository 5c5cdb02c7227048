/**
 * A host from the matrix of `nvidia-smi topo -m`. The matrix says how many bridges are between two
 * devices and not which, so devices under common bridges become one PCIe switch, and those under
 * one host bridge or NUMA node one NUMA domain.
 */
import { type Accelerator, accelerator as acceleratorNamed } from "../accelerator.ts";
import { pcieGen4, socketLink } from "../catalogue/box.ts";
import { type Host, defineHost } from "../host.ts";
import type { Part, Wire } from "../interior.ts";
import { type Link, defineLink } from "../link.ts";
import type { TopoMatrix } from "./nvidia-smi-topo.ts";
import { nvlinkBandwidth } from "./scale-up-rate.ts";

export interface TopoHostOptions {
  readonly name: string;
  readonly accelerator: Accelerator | string;
  /** One GPU's share of the host's network ports. */
  readonly network: Link;
  /** Bandwidth of PCIe, one direction; x16 of the fourth generation when left out. */
  readonly pcie?: number;
}

/**
 * A host with the interior that a matrix describes.
 * @throws TriremeError "HOST" when the matrix shows NVLinks and the accelerator has none.
 */
export function hostFromTopo(matrix: TopoMatrix, options: TopoHostOptions): Host {
  const { devices, gpus, relations } = matrix;
  const accelerator =
    typeof options.accelerator === "string"
      ? acceleratorNamed(options.accelerator)
      : options.accelerator;
  const lane = defineLink("pcie", options.pcie ?? pcieGen4);
  const parts: Part[] = devices.map((name, i) => ({
    kind: i < gpus ? "accelerator" : "nic",
    name: i < gpus ? name : matrix.nicNames[i - gpus]!,
  }));
  const wires: Wire[] = [];

  const switches = components(devices.length, (i, j) =>
    ["PIX", "PXB"].includes(relations[i]![j]!.kind),
  );
  const near = (i: number, j: number): boolean => {
    const { kind } = relations[i]![j]!;
    if (["PIX", "PXB", "PHB", "NODE"].includes(kind)) return true;
    // NVLink hides what PCIe is between two GPUs; their affinities tell.
    const place = (g: number): string | undefined =>
      matrix.numaAffinity[g] ?? matrix.cpuAffinity[g];
    return kind === "NV" && place(i) !== undefined && place(i) === place(j);
  };
  const domains = components(devices.length, near);
  const firstDomain = parts.length;
  for (let d = 0; d <= Math.max(...domains); d++) parts.push({ kind: "numa", name: `numa${d}` });
  for (let d = firstDomain + 1; d < parts.length; d++) {
    wires.push({ a: firstDomain, b: d, link: socketLink });
  }
  for (let s = 0; s <= Math.max(...switches); s++) {
    const members = devices.flatMap((_, i) => (switches[i] === s ? [i] : []));
    const above = firstDomain + domains[members[0]!]!;
    if (members.length === 1) {
      wires.push({ a: members[0]!, b: above, link: lane });
      continue;
    }
    parts.push({ kind: "pcie", name: `pcie${s}` });
    const at = parts.length - 1;
    wires.push({ a: at, b: above, link: lane });
    for (const m of members) wires.push({ a: m, b: at, link: lane });
  }
  addNvlinks(matrix, accelerator, parts, wires);
  const { name, network } = options;
  return defineHost({ name, accelerator, network, interior: { parts, wires } });
}

/** NVLinks: a wire a pair, or, where pairs need more links than a GPU has, a switch. */
function addNvlinks(
  { gpus, relations }: TopoMatrix,
  accelerator: Accelerator,
  parts: Part[],
  wires: Wire[],
): void {
  const linksOf = (i: number, j: number): number => {
    const relation = relations[i]![j]!;
    return relation.kind === "NV" ? relation.links : 0;
  };
  const all = Array.from({ length: gpus }, (_, i) => i);
  const most = Math.max(0, ...all.flatMap((i) => all.map((j) => linksOf(i, j))));
  if (most === 0) return;
  const one = nvlinkBandwidth(accelerator);
  const ports = Math.max(most, Math.round(accelerator.scaleUp / one));
  const switched = all.some((i) => all.reduce((sum, j) => sum + linksOf(i, j), 0) > ports);
  if (switched) {
    parts.push({ kind: "switch", name: "nvswitch" });
    const hub = parts.length - 1;
    for (const i of all) {
      const links = Math.max(...all.map((j) => linksOf(i, j)));
      if (links > 0) wires.push({ a: i, b: hub, link: defineLink("nvlink", links * one, 0.5e-6) });
    }
    return;
  }
  for (const i of all) {
    for (const j of all.slice(i + 1)) {
      const links = linksOf(i, j);
      if (links > 0) wires.push({ a: i, b: j, link: defineLink("nvlink", links * one) });
    }
  }
}

/** Number of the component of each item under a relation, in order of their first items. */
function components(count: number, joined: (i: number, j: number) => boolean): number[] {
  const group = Array.from({ length: count }, () => -1);
  let groups = 0;
  for (let i = 0; i < count; i++) {
    if (group[i] !== -1) continue;
    const queue = [i];
    group[i] = groups;
    for (const at of queue) {
      for (let j = 0; j < count; j++) {
        if (group[j] !== -1 || at === j || !joined(at, j)) continue;
        group[j] = groups;
        queue.push(j);
      }
    }
    groups++;
  }
  return group;
}
