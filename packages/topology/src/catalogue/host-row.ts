/** A row of the catalogue of hosts. */
import { Gbps } from "@trireme/core";
import { accelerator } from "../accelerator.ts";
import type { Host } from "../host.ts";
import { type Interior, linkInside, partsOf } from "../interior.ts";
import { type Link, defineLink } from "../link.ts";
import { allPairs } from "./box.ts";

/** A row: `ports` x `port` Gbit/s of network are shared by the accelerators. */
export function hostRow(
  name: string,
  of: string,
  interior: Interior,
  port: number,
  source: string,
  scaleUpHosts = 1,
): Host {
  const accelerators = partsOf(interior, "accelerator").length;
  const ports = partsOf(interior, "nic").length;
  return {
    name,
    accelerator: accelerator(of),
    accelerators,
    concurrency: accelerators,
    link: slowest(interior, accelerators),
    network: defineLink("network", Gbps((port * ports) / accelerators)),
    ...(scaleUpHosts > 1 && { scaleUpHosts }),
    interior,
    source,
  };
}

function slowest(interior: Interior, accelerators: number): Link {
  let link: Link | undefined;
  for (const [a, b] of allPairs(accelerators)) {
    const pair = linkInside(interior, a, b)!;
    if (!link || pair.bandwidth < link.bandwidth) link = pair;
  }
  return link ?? interior.wires[0]!.link;
}
