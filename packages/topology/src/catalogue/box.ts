/** Boxes: the wiring that most hosts have in common, as parts and wires. */
import { type BytesPerSecond, GBps, type Seconds, us } from "@trireme/core";
import type { Interior, Part, Wire } from "../interior.ts";
import { type Link, defineLink } from "../link.ts";

/** PCIe x16 of a generation, one direction, after encoding. */
export const pcieGen3: BytesPerSecond = GBps(15.75);
export const pcieGen4: BytesPerSecond = GBps(31.5);
export const pcieGen5: BytesPerSecond = GBps(63);

/** Time over one PCIe wire; a way is two or more. */
export const laneLatency: Seconds = us(0.5);

/** Between the sockets of a two-socket host: three or four UPI or xGMI links. */
export const socketLink: Link = defineLink("socket", GBps(60));

export interface BoxOptions {
  readonly accelerators: number;
  readonly nics: number;
  /** PCIe switches, each with an equal share of accelerators and NICs; 0 wires them to the sockets. */
  readonly pcieSwitches: number;
  readonly sockets: number;
  readonly pcie: BytesPerSecond;
  /** All accelerators on one scale-up switch, at this link. */
  readonly switched?: Link;
  /** Accelerators wired to each other: a, b, and how many cables of `cable`. */
  readonly pairs?: readonly (readonly [number, number, number])[];
  readonly cable?: Link;
}

/**
 * A box of sockets, PCIe switches below them, accelerators and NICs below these, in equal shares in
 * order, and scale-up wires across.
 */
export function box(options: BoxOptions): Interior {
  const { accelerators, nics, pcieSwitches, sockets, pcie, switched, pairs = [], cable } = options;
  const parts: Part[] = [];
  const wires: Wire[] = [];
  const add = (kind: Part["kind"], count: number, name: string): number => {
    const first = parts.length;
    for (let i = 0; i < count; i++) parts.push({ kind, name: `${name}${i}` });
    return first;
  };
  const firstDevice = add("accelerator", accelerators, "accelerator");
  const firstNic = add("nic", nics, "nic");
  const firstPcie = add("pcie", pcieSwitches, "pcie");
  const firstSocket = add("numa", sockets, "numa");
  const lane = defineLink("pcie", pcie, laneLatency);
  /** Wires `count` parts to `owners` above them in equal shares. */
  const share = (first: number, count: number, owner: number, owners: number): void => {
    for (let i = 0; i < count; i++) {
      wires.push({ a: first + i, b: owner + Math.floor((i * owners) / count), link: lane });
    }
  };
  const [above, aboves] = pcieSwitches > 0 ? [firstPcie, pcieSwitches] : [firstSocket, sockets];
  share(firstDevice, accelerators, above, aboves);
  share(firstNic, nics, above, aboves);
  if (pcieSwitches > 0) share(firstPcie, pcieSwitches, firstSocket, sockets);
  for (let s = 1; s < sockets; s++) {
    wires.push({ a: firstSocket, b: firstSocket + s, link: socketLink });
  }
  if (switched) {
    const hub = add("switch", 1, "switch");
    // Half the latency each way, so that a pair has the link's.
    const half = { ...switched, latency: switched.latency / 2 };
    for (let i = 0; i < accelerators; i++) wires.push({ a: firstDevice + i, b: hub, link: half });
  }
  if (cable) {
    for (const [a, b, cables] of pairs) {
      const link = { ...cable, bandwidth: cable.bandwidth * cables };
      wires.push({ a: firstDevice + a, b: firstDevice + b, link });
    }
  }
  return { parts, wires };
}

/** Every pair of accelerators wired to each other, one cable each. */
export function allPairs(accelerators: number): [number, number, number][] {
  const pairs: [number, number, number][] = [];
  for (let a = 0; a < accelerators; a++) {
    for (let b = a + 1; b < accelerators; b++) pairs.push([a, b, 1]);
  }
  return pairs;
}
