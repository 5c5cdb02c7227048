/** A host from NCCL's topology XML. */
import { Gbps } from "@trireme/core";
import { type Accelerator, accelerator as acceleratorNamed } from "../accelerator.ts";
import { socketLink } from "../catalogue/box.ts";
import { type Host, defineHost } from "../host.ts";
import type { Part, Wire } from "../interior.ts";
import { type Link, defineLink } from "../link.ts";
import { FormatError } from "./format-error.ts";
import { type NcclGpu, addScaleUp } from "./nccl-scale-up.ts";
import { type NcclElement, parseNcclXml } from "./nccl-xml.ts";
import { pcieBandwidth } from "./pcie-rate.ts";

export interface NcclHostOptions {
  readonly name: string;
  readonly accelerator: Accelerator | string;
  readonly file?: string;
  /** One GPU's share of the network, where the file lists no ports. */
  readonly network?: Link;
  /** From each GPU to the others over a switch, where the file lists no scale-up links. */
  readonly scaleUp?: Link;
}

/**
 * A host with the interior that an NCCL topology describes: a dump, or the skeleton that clouds give
 * their virtual machines (`NCCL_TOPO_FILE`), which has the buses of GPUs and NICs and nothing below;
 * its GPUs count by their bus, as CUDA does, and have no scale-up links but those of the options. A
 * PCI device whose link speed the file leaves empty has PCIe 3.0 x16, as NCCL assumes.
 * @throws FormatError with line and reason: also on links to unknown GPUs, or of one direction only,
 * and on a file of several hosts.
 */
export function hostFromNcclXml(text: string, options: NcclHostOptions): Host {
  const file = options.file ?? "NCCL topology XML";
  const system = parseNcclXml(text, file);
  const accelerator =
    typeof options.accelerator === "string"
      ? acceleratorNamed(options.accelerator)
      : options.accelerator;
  const fail = (at: NcclElement, reason: string): never => {
    throw new FormatError(file, at.line, reason);
  };
  checkOneHost(system, fail);
  const skeleton = !contains(system, "gpu");
  const parts: Part[] = [];
  const wires: Wire[] = [];
  const gpus: NcclGpu[] = [];
  const places = new Map<string, number>();
  let ports = 0;
  const addPart = (kind: Part["kind"], name: string, at: NcclElement): number => {
    if (places.has(name)) fail(at, `<${at.name}> "${name}" stands twice`);
    places.set(name, parts.length);
    return parts.push({ kind, name }) - 1;
  };
  const addGpu = (name: string, busid: string, element: NcclElement): number => {
    const part = addPart("accelerator", name, element);
    gpus.push({ part, busid, element });
    return part;
  };
  const walkPci = (at: NcclElement, above: number): void => {
    const id = at.attributes["busid"]!.toLowerCase();
    const { link_speed: speed = "", link_width: width = "" } = at.attributes;
    const rate = pcieBandwidth(speed, width);
    if (rate === undefined) {
      return fail(
        at,
        `<pci> has link_speed="${speed}" link_width="${width}"; expected such as "16.0 GT/s PCIe" and "16"`,
      );
    }
    const own = defineLink("pcie", rate);
    const kind = skeleton && at.children.length === 0 ? leafKind(at) : undefined;
    if (kind) {
      const part = kind === "nic" ? addPart("nic", id, at) : addGpu(id, id, at);
      wires.push({ a: part, b: above, link: own });
      return;
    }
    let owner = above;
    if (at.children.some((c) => c.name === "pci")) {
      owner = addPart("pcie", id, at);
      wires.push({ a: owner, b: above, link: own });
    }
    for (const child of at.children) walk(child, owner, own, id);
  };
  const walk = (at: NcclElement, above: number, lane: Link, busid: string): void => {
    if (at.name === "pci") walkPci(at, above);
    if (at.name === "gpu") {
      const part = addGpu(`gpu${at.attributes["dev"]}`, busid, at);
      wires.push({ a: part, b: above, link: lane });
    }
    if (at.name !== "nic") return;
    for (const net of at.children) {
      const name = net.attributes["name"]!;
      // A port without a bus of its own (a socket's) stands under every processor.
      const known = busid === "" ? places.get(name) : undefined;
      const part = known ?? addPart("nic", name, net);
      wires.push({ a: part, b: above, link: lane });
      if (known === undefined) ports += Gbps(Number(net.attributes["speed"]) / 1000);
    }
  };
  let firstNuma: number | undefined;
  for (const cpu of system.children) {
    const numa = addPart("numa", `numa${cpu.attributes["numaid"]}`, cpu);
    if (firstNuma === undefined) firstNuma = numa;
    else wires.push({ a: firstNuma, b: numa, link: socketLink });
    const lane = defineLink("pcie", pcieBandwidth("", "")!);
    for (const child of cpu.children) walk(child, numa, lane, "");
  }
  if (gpus.length === 0) fail(system, "the system has no <gpu>");
  if (!skeleton) addScaleUp(gpus, accelerator, parts, wires, fail);
  const { scaleUp } = options;
  if (scaleUp && !wires.some((w) => w.link.kind === "nvlink" || w.link.kind === "xgmi")) {
    const hub = parts.push({ kind: "switch", name: "scale-up" }) - 1;
    const half = { ...scaleUp, latency: scaleUp.latency / 2 };
    for (const gpu of gpus) wires.push({ a: gpu.part, b: hub, link: half });
  }
  const network =
    options.network ?? (ports > 0 ? defineLink("network", ports / gpus.length) : undefined);
  if (!network) {
    return fail(
      system,
      "the system has no <net> with a speed; give the network's link as an option",
    );
  }
  const { name } = options;
  return defineHost({ name, accelerator, network, interior: gpusFirst(parts, wires, gpus) });
}

/** What a PCI device without children is, by its class; undefined for others. */
function leafKind(pci: NcclElement): "gpu" | "nic" | undefined {
  const kind = pci.attributes["class"] ?? "";
  // Display controllers and processing accelerators; network controllers.
  if (kind.startsWith("0x03") || kind.startsWith("0x12")) return "gpu";
  return kind.startsWith("0x02") ? "nic" : undefined;
}

/** Devices count by their order in `parts`; NCCL numbers them by dev, a skeleton by its buses. */
function gpusFirst(
  parts: readonly Part[],
  wires: readonly Wire[],
  gpus: readonly NcclGpu[],
): { parts: Part[]; wires: Wire[] } {
  const devOf = ({ element }: NcclGpu): number => Number(element.attributes["dev"] ?? 0);
  const sorted = gpus.toSorted(
    (x, y) => devOf(x) - devOf(y) || (x.busid < y.busid ? -1 : Number(x.busid > y.busid)),
  );
  const order = new Set([...sorted.map((g) => g.part), ...parts.keys()]);
  const place = new Map([...order].map((part, i) => [part, i]));
  return {
    parts: [...order].map((part) => parts[part]!),
    wires: wires.map(({ a, b, link }) => ({ a: place.get(a)!, b: place.get(b)!, link })),
  };
}

/** A dump of a multi-host scale-up domain has the processors of all its hosts. */
function checkOneHost(system: NcclElement, fail: (at: NcclElement, reason: string) => never): void {
  const first = system.children[0]?.attributes["host_hash"];
  for (const cpu of system.children) {
    const hash = cpu.attributes["host_hash"];
    if (hash !== first) {
      fail(cpu, `<cpu> of host ${hash} beside one of host ${first}; give the file of one host`);
    }
  }
}

function contains(at: NcclElement, name: string): boolean {
  return at.name === name || at.children.some((c) => contains(c, name));
}
