/**
 * The hosts we know, one row each. A device's network link is its share of the host's compute
 * ports; storage and management ports are left out.
 */
import { GBps, GiB, TFLOPS } from "@trireme/core";
import { cpuHost } from "../cpu-host.ts";
import type { Host } from "../host.ts";
import { allPairs, pcieGen3, pcieGen4, pcieGen5 } from "./box.ts";
import { hostRow as row } from "./host-row.ts";
import { nvidiaHosts } from "./nvidia-hosts.ts";
import {
  frontierInterior,
  gaudiInterior,
  max1550Interior,
  mesh,
  square,
  twoByFour,
} from "./wirings.ts";

export const hosts: readonly Host[] = [
  ...nvidiaHosts,
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
    "mi325x-8",
    "mi325x",
    mesh(8, allPairs(8), "xgmi", 64, pcieGen5),
    400,
    "AMD Instinct MI325X platform datasheet: one Infinity Fabric link a pair, a NIC beside each GPU",
  ),
  row(
    "mi350x-8",
    "mi350x",
    mesh(8, allPairs(8), "xgmi", 76.8, pcieGen5),
    400,
    "AMD Instinct MI350X platform datasheet: one Infinity Fabric link a pair, a NIC beside each GPU",
  ),
  row(
    "mi355x-8",
    "mi355x",
    mesh(8, allPairs(8), "xgmi", 76.8, pcieGen5),
    400,
    "AMD Instinct MI355X platform datasheet: one Infinity Fabric link a pair, a NIC beside each GPU",
  ),
  row(
    "max1550-4",
    "max1550",
    max1550Interior(),
    200,
    "LRZ: SuperMUC-NG Phase 2, 4 x Max 1550 and 2 x HDR a node; tile to tile as ALCF measured on Aurora; two Xe Links a pair follow from eight a tile",
  ),
  row(
    "gaudi2-8",
    "gaudi2",
    gaudiInterior(37.5, pcieGen4),
    300,
    "Intel Gaudi documentation, HLS-Gaudi2 server: 3 x 100 Gbit/s Ethernet a pair, and 3 out of the host from each device",
  ),
  row(
    "gaudi3-8",
    "gaudi3",
    gaudiInterior(75, pcieGen5),
    600,
    "Intel Gaudi 3 white paper, HLB-325 baseboard: 3 x 200 Gbit/s Ethernet a pair, and 3 out of the host from each device",
  ),
  row(
    "tpu-v3",
    "tpu-v3",
    mesh(4, square, "ici", 70, pcieGen3),
    25,
    "Google Cloud TPU v3 documentation: four chips a host, 1,024 on one torus; the network's share is an assumption: the v5e's",
    256,
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
  row(
    "tpu-v6e",
    "tpu-v6e",
    mesh(8, twoByFour, "ici", 100, pcieGen5),
    100,
    "Google Cloud TPU v6e documentation: eight chips and four ports of 200 Gbit/s a host, 256 chips on one torus",
    32,
  ),
  row(
    "tpu-v7",
    "tpu-v7",
    mesh(4, square, "ici", 100, pcieGen5),
    100,
    "Google Cloud TPU7x documentation: four chips a host, 100 Gbit/s of network each, 9,216 on one torus",
    2304,
  ),
  {
    ...cpuHost({ cores: 8, peak: TFLOPS(0.096), memory: GiB(32), memoryBandwidth: GBps(40) }),
    name: "cpu-8",
    source: "Eight cores of the generic server core in the accelerator catalogue; see cpuHost",
  },
];
