/**
 * The hosts we know, one row each. A device's network link is its share of the host's compute
 * ports; storage and management ports are left out.
 */
import { GBps, Gbps, GiB, TFLOPS } from "@trireme/core";
import { accelerator } from "../accelerator.ts";
import { cpuHost } from "../cpu-host.ts";
import type { Host } from "../host.ts";
import { type Interior, linkInside, partsOf } from "../interior.ts";
import { type Link, defineLink } from "../link.ts";
import { allPairs, box, pcieGen3, pcieGen4, pcieGen5 } from "./box.ts";
import {
  cards,
  cubeMesh,
  frontierInterior,
  hgx,
  hgxA100,
  hgxB200,
  hgxH100,
  max1550Interior,
  mesh,
  square,
  tray,
  twoByFour,
} from "./wirings.ts";

/** A row: `ports` x `port` Gbit/s of network are shared by the accelerators. */
function row(
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

export const hosts: readonly Host[] = [
  row(
    "dgx-v100-16",
    "v100-16",
    cubeMesh,
    100,
    "NVIDIA DGX-1 (Volta) datasheet and system guide: 4 x EDR",
  ),
  row(
    "dgx-v100-32",
    "v100-32",
    cubeMesh,
    100,
    "NVIDIA DGX-1 (Volta) datasheet and system guide: 4 x EDR",
  ),
  row(
    "dgx-a100-40",
    "a100-40",
    hgxA100,
    200,
    "NVIDIA DGX A100 datasheet: 8 x HDR; a PCIe switch for two GPUs and two NICs",
  ),
  row(
    "dgx-a100-80",
    "a100-80",
    hgxA100,
    200,
    "NVIDIA DGX A100 datasheet: 8 x HDR; a PCIe switch for two GPUs and two NICs",
  ),
  row(
    "hgx-a800-80",
    "a800-80",
    hgx(200, pcieGen4, 4),
    200,
    "HGX A100 board with A800: 400 GB/s of NVLink, both directions",
  ),
  row(
    "dgx-h100",
    "h100",
    hgxH100,
    400,
    "NVIDIA DGX H100 datasheet: 8 x NDR, a NIC beside each GPU",
  ),
  row(
    "hgx-h800",
    "h800",
    hgx(200, pcieGen5, 8),
    400,
    "HGX H100 board with H800: 400 GB/s of NVLink, both directions",
  ),
  row("hgx-h20", "h20", hgxH100, 400, "HGX H100 board with H20"),
  row(
    "dgx-h200",
    "h200",
    hgxH100,
    400,
    "NVIDIA DGX H200 datasheet: 8 x NDR, a NIC beside each GPU",
  ),
  row(
    "dgx-b200",
    "b200",
    hgxB200,
    400,
    "NVIDIA DGX B200 datasheet: 8 x NDR, a NIC beside each GPU",
  ),
  row(
    "dgx-b300",
    "b300",
    hgxB200,
    800,
    "NVIDIA DGX B300 datasheet: 8 x XDR, a NIC beside each GPU",
  ),
  row(
    "gb200-nvl72",
    "gb200",
    tray,
    400,
    "NVIDIA GB200 NVL72 datasheet: one of 18 trays; 4 x NDR; NVLink-C2C to the processors",
    18,
  ),
  row(
    "gb300-nvl72",
    "gb300",
    tray,
    800,
    "NVIDIA GB300 NVL72 datasheet: one of 18 trays; 4 x XDR; NVLink-C2C to the processors",
    18,
  ),
  row(
    "gh200",
    "gh200",
    box({ accelerators: 1, nics: 1, pcieSwitches: 0, sockets: 1, pcie: GBps(450) }),
    400,
    "NVIDIA GH200 datasheet: NVLink-C2C to the processor; one NDR port",
  ),
  row(
    "pcie-4x-a100",
    "a100-pcie-80",
    cards(4, 1, pcieGen4),
    200,
    "Four cards on the root ports of two sockets, PCIe 4.0 x16, one HDR port",
  ),
  row(
    "pcie-8x-a100",
    "a100-pcie-80",
    cards(8, 2, pcieGen4),
    200,
    "Eight cards on the root ports of two sockets, PCIe 4.0 x16, two HDR ports",
  ),
  row(
    "pcie-8x-h100",
    "h100-pcie",
    cards(8, 8, pcieGen5),
    200,
    "Eight cards on the root ports of two sockets, PCIe 5.0 x16",
  ),
  row(
    "pcie-8x-h100-nvl",
    "h100-nvl",
    mesh(
      8,
      [
        [0, 1, 1],
        [2, 3, 1],
        [4, 5, 1],
        [6, 7, 1],
      ],
      "nvlink",
      300,
      pcieGen5,
    ),
    200,
    "Four bridged pairs of H100 NVL on the root ports of two sockets, PCIe 5.0 x16",
  ),
  row(
    "pcie-8x-l40s",
    "l40s",
    cards(8, 2, pcieGen4),
    200,
    "Eight cards on the root ports of two sockets, PCIe 4.0 x16",
  ),
  row(
    "pcie-8x-l20",
    "l20",
    cards(8, 2, pcieGen4),
    200,
    "Eight cards on the root ports of two sockets, PCIe 4.0 x16",
  ),
  row(
    "pcie-8x-rtx3080ti",
    "rtx3080ti",
    cards(8, 1, pcieGen4),
    10,
    "HexiScale's rented hosts (arXiv 2409.01143): PCIe 4.0 x16, Ethernet; peer access off costs more than these figures show",
  ),
  row(
    "pcie-8x-rtx3090",
    "rtx3090",
    cards(8, 1, pcieGen4),
    10,
    "HexiScale's rented hosts (arXiv 2409.01143): PCIe 4.0 x16, Ethernet; peer access off costs more than these figures show",
  ),
  row(
    "pcie-4x-rtx4090",
    "rtx4090",
    cards(4, 1, pcieGen4),
    10,
    "HexiScale's rented hosts (arXiv 2409.01143): PCIe 4.0 x16, Ethernet; peer access off costs more than these figures show",
  ),
  row(
    "pcie-8x-rtx4090",
    "rtx4090",
    cards(8, 1, pcieGen4),
    10,
    "HexiScale's rented hosts (arXiv 2409.01143): PCIe 4.0 x16, Ethernet; peer access off costs more than these figures show",
  ),
  row(
    "pcie-8x-a6000",
    "a6000",
    cards(8, 1, pcieGen4),
    100,
    "Eight cards on the root ports of two sockets, PCIe 4.0 x16",
  ),
  row(
    "frontier",
    "mi250x",
    frontierInterior(),
    200,
    "OLCF: Frontier user guide, node diagram and system interconnect: 4 x Slingshot 200G",
  ),
  row(
    "mi210-4",
    "mi210",
    mesh(4, allPairs(4), "xgmi", 50, pcieGen4),
    200,
    "AMD Instinct MI210 datasheet: bridge of four cards, one Infinity Fabric link a pair",
  ),
  row(
    "mi300x-8",
    "mi300x",
    mesh(8, allPairs(8), "xgmi", 64, pcieGen5),
    400,
    "AMD Instinct MI300X platform datasheet: one Infinity Fabric link a pair, a NIC beside each GPU",
  ),
  row(
    "max1550-4",
    "max1550",
    max1550Interior(),
    200,
    "LRZ: SuperMUC-NG Phase 2, 4 x Max 1550 and 2 x HDR a node; tile to tile as ALCF measured on Aurora; two Xe Links a pair follow from eight a tile",
  ),
  row(
    "tpu-v4",
    "tpu-v4",
    mesh(4, square, "ici", 45, pcieGen3),
    50,
    "Google Cloud TPU v4 documentation: four chips a host, 4,096 on one torus",
    1024,
  ),
  row(
    "tpu-v5e",
    "tpu-v5e",
    mesh(8, twoByFour, "ici", 50, pcieGen3),
    25,
    "Google Cloud TPU v5e documentation: eight chips a host, 256 on one torus",
    32,
  ),
  row(
    "tpu-v5p",
    "tpu-v5p",
    mesh(4, square, "ici", 100, pcieGen3),
    50,
    "Google Cloud TPU v5p documentation: four chips a host, 8,960 on one torus",
    2240,
  ),
  {
    ...cpuHost({ cores: 8, peak: TFLOPS(0.096), memory: GiB(32), memoryBandwidth: GBps(40) }),
    name: "cpu-8",
    source: "Eight cores of the generic server core in the accelerator catalogue; see cpuHost",
  },
];
