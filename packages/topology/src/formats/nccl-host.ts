/** A host from NCCL's topology XML. */
import { Gbps } from "@trireme/core";
import { type Accelerator, accelerator as acceleratorNamed } from "../accelerator.ts";
import { socketLink } from "../catalogue/box.ts";
import { type Host, defineHost } from "../host.ts";
import type { Part, Wire } from "../interior.ts";
import { type Link, defineLink } from "../link.ts";
import { FormatError } from "./format-error.ts";
import { type NcclElement, parseNcclXml } from "./nccl-xml.ts";
import { nvlinkBandwidth } from "./nvlink-rate.ts";
import { pcieBandwidth } from "./pcie-rate.ts";

export interface NcclHostOptions {
  readonly name: string;
  readonly accelerator: Accelerator | string;
  readonly file?: string;
  /** One GPU's share of the network, where the file lists no ports. */
  readonly network?: Link;
}

/**
 * A host with the interior that an NCCL topology describes. A PCI device whose link speed the file
 * leaves empty has PCIe 3.0 x16, as NCCL assumes.
 * @throws FormatError with line and reason: also on links to unknown GPUs, or of one direction only.
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
  const parts: Part[] = [];
  const wires: Wire[] = [];
  const gpus: { part: number; busid: string; element: NcclElement }[] = [];
  const busids = new Map<string, number>();
  const names = new Set<string>();
  let ports = 0;
  const addPart = (kind: Part["kind"], name: string, at: NcclElement): number => {
    if (names.has(name)) fail(at, `<${at.name}> "${name}" stands twice`);
    names.add(name);
    return parts.push({ kind, name }) - 1;
  };
  const walk = (at: NcclElement, above: number, lane: Link, busid: string): void => {
    switch (at.name) {
      case "pci": {
        const id = at.attributes["busid"]!.toLowerCase();
        const rate = pcieBandwidth(
          at.attributes["link_speed"] ?? "",
          at.attributes["link_width"] ?? "",
        );
        if (rate === undefined) {
          fail(
            at,
            `<pci> has link_speed="${at.attributes["link_speed"]}" link_width="${at.attributes["link_width"]}"; expected such as "16.0 GT/s PCIe" and "16"`,
          );
        }
        const own = defineLink("pcie", rate!);
        const bridge = at.children.some((c) => c.name === "pci");
        if (!bridge) {
          for (const child of at.children) walk(child, above, own, id);
          return;
        }
        const part = addPart("pcie", id, at);
        wires.push({ a: part, b: above, link: own });
        for (const child of at.children) walk(child, part, own, id);
        return;
      }
      case "gpu": {
        const part = addPart("accelerator", `gpu${at.attributes["dev"]}`, at);
        wires.push({ a: part, b: above, link: lane });
        gpus.push({ part, busid, element: at });
        busids.set(busid, part);
        return;
      }
      case "nic":
        for (const net of at.children) {
          const part = addPart("nic", net.attributes["name"]!, net);
          wires.push({ a: part, b: above, link: lane });
          ports += Gbps(Number(net.attributes["speed"]) / 1000);
        }
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
  addScaleUp();
  // Devices count by their order in `parts`; NCCL numbers them by dev.
  const byDev = gpus.toSorted((x, y) => devOf(x.element) - devOf(y.element));
  const order = [...byDev.map((g) => g.part), ...parts.keys()];
  const place = new Map<number, number>();
  for (const part of order) if (!place.has(part)) place.set(part, place.size);
  const sorted = [...place.keys()].map((part) => parts[part]!);
  const moved = wires.map(({ a, b, link }) => ({ a: place.get(a)!, b: place.get(b)!, link }));
  const network =
    options.network ?? (ports > 0 ? defineLink("network", ports / gpus.length) : undefined);
  if (!network)
    return fail(system, "the system has no <net>; give the network's link as an option");
  return defineHost({
    name: options.name,
    accelerator,
    network,
    interior: { parts: sorted, wires: moved },
  });

  /** NVLinks and xGMI: to a switch where the target is no GPU, else pair by pair. */
  function addScaleUp(): void {
    let hub: number | undefined;
    const pairs = new Map<string, PairLinks>();
    for (const gpu of gpus) {
      let toHub = 0;
      for (const link of gpu.element.children) {
        if (link.name === "c2c") continue;
        const kind = link.name === "xgmi" ? "xgmi" : "nvlink";
        const count = Number(link.attributes["count"]);
        const target = busids.get(link.attributes["target"]!.toLowerCase());
        if (target === undefined) {
          // Class 0680xx is a bridge: an NVSwitch.
          if (!link.attributes["tclass"]?.startsWith("0x0680")) {
            fail(
              link,
              `<${link.name}> to ${link.attributes["target"]}, which is no GPU of the file`,
            );
          }
          toHub += count;
          continue;
        }
        const key = `${gpu.part}-${target}`;
        const before = pairs.get(key)?.count ?? 0;
        pairs.set(key, { a: gpu.part, b: target, count: before + count, kind, at: link });
      }
      if (toHub === 0) continue;
      hub ??= addPart("switch", "nvswitch", gpu.element);
      const link = defineLink("nvlink", toHub * nvlinkBandwidth(accelerator), 0.5e-6);
      wires.push({ a: gpu.part, b: hub, link });
    }
    for (const { a, b, count, kind, at } of pairs.values()) {
      const back = pairs.get(`${b}-${a}`)?.count ?? 0;
      if (back !== count) {
        fail(at, `${count} links from ${parts[a]!.name} to ${parts[b]!.name}, but ${back} back`);
      }
      if (a > b) continue;
      const one = kind === "xgmi" ? 50e9 : nvlinkBandwidth(accelerator);
      wires.push({ a, b, link: defineLink(kind, count * one) });
    }
  }
}

/** Links from one GPU to another. */
interface PairLinks {
  readonly a: number;
  readonly b: number;
  readonly count: number;
  readonly kind: "nvlink" | "xgmi";
  /** The last element that counted. */
  readonly at: NcclElement;
}

function devOf(gpu: NcclElement): number {
  return Number(gpu.attributes["dev"]);
}
