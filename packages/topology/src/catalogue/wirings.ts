/** The wirings of the catalogue's hosts. */
import { GBps } from "@trireme/core";
import type { Interior, Part, Wire } from "../interior.ts";
import { type Link, type LinkKind, defineLink } from "../link.ts";
import { allPairs, box, laneLatency, pcieGen3, pcieGen4, pcieGen5, socketLink } from "./box.ts";

/** Eight accelerators on one switch, `gigabytes` GB/s each, a NIC beside each. */
export function hgx(gigabytes: number, pcie: number, pcieSwitches: number): Interior {
  const switched = defineLink("nvlink", GBps(gigabytes));
  return box({ accelerators: 8, nics: 8, pcieSwitches, sockets: 2, pcie, switched });
}

/** Cards on the root ports of two sockets. */
export function cards(accelerators: number, nics: number, pcie: number): Interior {
  return box({ accelerators, nics, pcieSwitches: 0, sockets: 2, pcie });
}

/** Accelerators wired pair by pair, with cables of `gigabytes` GB/s. */
export function mesh(
  accelerators: number,
  pairs: [number, number, number][],
  kind: LinkKind,
  gigabytes: number,
  pcie: number,
): Interior {
  const cable = defineLink(kind, GBps(gigabytes));
  return box({ accelerators, nics: accelerators, pcieSwitches: 0, sockets: 2, pcie, pairs, cable });
}

/** DGX-1: a hybrid cube mesh of NVLinks, 25 GB/s each; a PCIe switch for two GPUs and a NIC. */
export const cubeMesh: Interior = box({
  accelerators: 8,
  nics: 4,
  pcieSwitches: 4,
  sockets: 2,
  pcie: pcieGen3,
  cable: defineLink("nvlink", GBps(25)),
  pairs: [
    [0, 1, 1],
    [0, 2, 1],
    [0, 3, 2],
    [0, 4, 2],
    [1, 2, 2],
    [1, 3, 1],
    [1, 5, 2],
    [2, 3, 2],
    [2, 6, 1],
    [3, 7, 1],
    [4, 5, 1],
    [4, 6, 1],
    [4, 7, 2],
    [5, 6, 2],
    [5, 7, 1],
    [6, 7, 2],
  ],
});

/** A tray of an NVL72 rack: four GPUs, two Grace processors, four NICs; 18 trays on one NVLink. */
export const tray: Interior = box({
  accelerators: 4,
  nics: 4,
  pcieSwitches: 0,
  sockets: 2,
  pcie: GBps(450),
  switched: defineLink("nvlink", GBps(900)),
});

export const hgxA100: Interior = hgx(300, pcieGen4, 4);
export const hgxH100: Interior = hgx(450, pcieGen5, 8);
export const hgxB200: Interior = hgx(900, pcieGen5, 8);
export const square: [number, number, number][] = [
  [0, 1, 1],
  [1, 3, 1],
  [2, 3, 1],
  [0, 2, 1],
];
/** Four cards on each of two bridges. */
export const fours: [number, number, number][] = [0, 4].flatMap((first) =>
  allPairs(4).map(([a, b, cables]): [number, number, number] => [first + a, first + b, cables]),
);
/** Eight chips of a v5e host, two rows of four. */
export const twoByFour: [number, number, number][] = [
  [0, 4, 1],
  [1, 5, 1],
  [2, 6, 1],
  [3, 7, 1],
  [0, 1, 1],
  [1, 2, 1],
  [2, 3, 1],
  [4, 5, 1],
  [5, 6, 1],
  [6, 7, 1],
];

/**
 * Frontier's node (OLCF: Frontier user guide, node diagram): eight dies in four packages, 50 GB/s a
 * cable and direction, four cables inside a package and one or two between; 36 GB/s from each die
 * to its NUMA domain; a NIC at the odd die of each package.
 */
export function frontierInterior(): Interior {
  const cables: readonly (readonly [number, number, number])[] = [
    [0, 1, 4],
    [2, 3, 4],
    [4, 5, 4],
    [6, 7, 4],
    [0, 6, 2],
    [2, 4, 2],
    [0, 2, 1],
    [1, 3, 1],
    [1, 5, 1],
    [3, 7, 1],
    [4, 6, 1],
    [5, 7, 1],
  ];
  const numaOfDie = [3, 3, 1, 1, 0, 0, 2, 2];
  const parts: Part[] = [
    ...numaOfDie.map((_, i): Part => ({ kind: "accelerator", name: `gcd${i}` })),
    ...[0, 1, 2, 3].map((i): Part => ({ kind: "nic", name: `nic${i}` })),
    ...[0, 1, 2, 3].map((i): Part => ({ kind: "numa", name: `numa${i}` })),
  ];
  const xgmi = (gigabytes: number): Link => defineLink("xgmi", GBps(gigabytes));
  const wires: Wire[] = [
    ...cables.map(([a, b, n]): Wire => ({ a, b, link: xgmi(50 * n) })),
    ...numaOfDie.map((numa, die): Wire => ({ a: die, b: 12 + numa, link: xgmi(36) })),
    ...[0, 1, 2, 3].map((i): Wire => ({
      a: 2 * i + 1,
      b: 8 + i,
      link: defineLink("pcie", GBps(50)),
    })),
    ...[1, 2, 3].map((n): Wire => ({ a: 12, b: 12 + n, link: socketLink })),
  ];
  return { parts, wires };
}

/**
 * Four Max 1550 (SuperMUC-NG Phase 2): eight tiles, two in a package; tiles of one side of all
 * packages are wired to each other, two Xe Links of 26.5 GB/s a pair.
 */
export function max1550Interior(): Interior {
  const pairs: [number, number, number][] = [];
  for (let a = 0; a < 8; a++) for (let b = a + 2; b < 8; b += 2) pairs.push([a, b, 2]);
  const base = box({
    accelerators: 8,
    nics: 2,
    pcieSwitches: 0,
    sockets: 2,
    pcie: pcieGen5,
    pairs,
    cable: defineLink("xelink", GBps(26.5)),
  });
  // Measured by ALCF on Aurora from tile to tile of one package, one direction.
  const inside = defineLink("xelink", GBps(196));
  const packages = [0, 2, 4, 6].map((a): Wire => ({ a, b: a + 1, link: inside }));
  return { parts: base.parts, wires: [...base.wires, ...packages] };
}

/**
 * Eight Gaudis: three Ethernet ports between any two (`gigabytes` GB/s a pair and direction), and three more out of the
 * host, on the device itself (Gaudi documentation, HLS-2 and HLS-3); a socket for four of them.
 */
export function gaudiInterior(gigabytes: number, pcie: number): Interior {
  const roce = defineLink("roce", GBps(gigabytes));
  const devices = [0, 1, 2, 3, 4, 5, 6, 7];
  const parts: Part[] = [
    ...devices.map((i): Part => ({ kind: "accelerator", name: `accelerator${i}` })),
    ...devices.map((i): Part => ({ kind: "nic", name: `nic${i}` })),
    ...[0, 1].map((i): Part => ({ kind: "numa", name: `numa${i}` })),
  ];
  const lane = defineLink("pcie", pcie, laneLatency);
  const wires: Wire[] = [
    ...allPairs(8).map(([a, b]): Wire => ({ a, b, link: roce })),
    ...devices.map((i): Wire => ({ a: i, b: 8 + i, link: { ...roce, latency: 0 } })),
    ...devices.map((i): Wire => ({ a: i, b: 16 + Math.floor(i / 4), link: lane })),
    { a: 16, b: 17, link: socketLink },
  ];
  return { parts, wires };
}
