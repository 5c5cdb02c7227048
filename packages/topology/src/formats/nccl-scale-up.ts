/** The scale-up wires of an NCCL topology: NVLinks and xGMI links, to a switch or pair by pair. */
import type { Accelerator } from "../accelerator.ts";
import type { Part, Wire } from "../interior.ts";
import { defineLink } from "../link.ts";
import type { NcclElement } from "./nccl-xml.ts";
import { nvlinkBandwidth, xgmiBandwidth } from "./scale-up-rate.ts";

/** A GPU of the file: its part, its bus, and the element that lists its links. */
export interface NcclGpu {
  readonly part: number;
  readonly busid: string;
  readonly element: NcclElement;
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

/**
 * Adds the wires to `parts` and `wires`: to a switch where a link's target is a bridge, else from
 * GPU to GPU. A link from a GPU to itself, as some virtual machines show, joins nothing and is left
 * out.
 */
export function addScaleUp(
  gpus: readonly NcclGpu[],
  accelerator: Accelerator,
  parts: Part[],
  wires: Wire[],
  fail: (at: NcclElement, reason: string) => never,
): void {
  const partAt = new Map(gpus.map((g) => [g.busid, g.part]));
  const pairs = new Map<string, PairLinks>();
  let hub: number | undefined;
  for (const gpu of gpus) {
    let toHub = 0;
    for (const link of gpu.element.children) {
      if (link.name === "c2c") continue;
      const count = Number(link.attributes["count"]);
      const target = partAt.get(link.attributes["target"]!.toLowerCase());
      if (target === gpu.part) continue;
      if (target === undefined) {
        // Class 0680xx is a bridge: an NVSwitch.
        if (!link.attributes["tclass"]?.startsWith("0x0680")) {
          fail(link, `<${link.name}> to ${link.attributes["target"]}, which is no GPU of the file`);
        }
        toHub += count;
        continue;
      }
      const key = `${gpu.part}-${target}`;
      const before = pairs.get(key)?.count ?? 0;
      const kind = link.name === "xgmi" ? "xgmi" : "nvlink";
      pairs.set(key, { a: gpu.part, b: target, count: before + count, kind, at: link });
    }
    if (toHub === 0) continue;
    hub ??= parts.push({ kind: "switch", name: "nvswitch" }) - 1;
    const link = defineLink("nvlink", toHub * nvlinkBandwidth(accelerator), 0.5e-6);
    wires.push({ a: gpu.part, b: hub, link });
  }
  for (const { a, b, count, kind, at } of pairs.values()) {
    const back = pairs.get(`${b}-${a}`)?.count ?? 0;
    if (back !== count) {
      fail(at, `${count} links from ${parts[a]!.name} to ${parts[b]!.name}, but ${back} back`);
    }
    if (a > b) continue;
    const one = kind === "xgmi" ? xgmiBandwidth(accelerator) : nvlinkBandwidth(accelerator);
    wires.push({ a, b, link: defineLink(kind, count * one) });
  }
}
