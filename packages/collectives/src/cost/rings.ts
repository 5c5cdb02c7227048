/**
 * Rings that fit into a host whose accelerators are wired pair by pair: directed Hamiltonian cycles
 * that share no wire. A DGX-1 has one over two neighbours, four over GPUs 0 to 3 and six over all
 * eight.
 */
import type { BytesPerSecond } from "@trireme/core";
import type { Interior } from "@trireme/topology";

export interface Rings {
  readonly rings: number;
  /** What one ring carries: the width of the narrowest wire. */
  readonly bandwidth: BytesPerSecond;
}

/** Nodes of the search that are looked at before the best so far is taken. */
const patience = 20_000;

const known = new WeakMap<Interior, Map<string, Rings | undefined>>();

/**
 * The rings among devices of a host, numbered within it. Undefined when the accelerators are joined
 * by a switch or not wired to each other; 0 rings when some of these devices are not.
 */
export function ringsInside(interior: Interior, devices: readonly number[]): Rings | undefined {
  let byDevices = known.get(interior);
  if (byDevices === undefined) known.set(interior, (byDevices = new Map()));
  const key = devices.join();
  if (!byDevices.has(key)) byDevices.set(key, search(interior, devices));
  return byDevices.get(key);
}

function search(interior: Interior, devices: readonly number[]): Rings | undefined {
  const { parts, wires } = interior;
  if (parts.some((part) => part.kind === "switch")) return undefined;
  const accelerators = parts.flatMap((part, i) => (part.kind === "accelerator" ? [i] : []));
  const direct = wires.filter(({ a, b }) => accelerators.includes(a) && accelerators.includes(b));
  if (direct.length === 0) return undefined;
  const bandwidth = Math.min(...direct.map(({ link }) => link.bandwidth));
  const n = devices.length;
  const free = Array.from({ length: n }, () => new Int32Array(n));
  for (const { a, b, link } of direct) {
    const i = devices.indexOf(accelerators.indexOf(a));
    const j = devices.indexOf(accelerators.indexOf(b));
    if (i < 0 || j < 0) continue;
    const lanes = Math.floor(link.bandwidth / bandwidth);
    free[i]![j]! += lanes;
    free[j]![i]! += lanes;
  }
  return { rings: n < 2 ? 0 : mostCycles(free), bandwidth };
}

/** The most Hamiltonian cycles found in a directed multigraph by trying the widest edges first. */
function mostCycles(free: readonly Int32Array[]): number {
  const n = free.length;
  const bound = Math.min(...free.map((row) => row.reduce((sum, lanes) => sum + lanes, 0)));
  let best = 0;
  let looked = 0;
  const path = [0];
  const on = new Uint8Array(n);
  on[0] = 1;
  const extend = (cycles: number): void => {
    if (best === bound || looked++ > patience) return;
    const at = path.at(-1)!;
    if (path.length === n) {
      if (free[at]![0] === 0) return;
      free[at]![0]!--;
      best = Math.max(best, cycles + 1);
      const round = path.splice(1);
      for (const node of round) on[node] = 0;
      extend(cycles + 1);
      path.push(...round);
      for (const node of round) on[node] = 1;
      free[at]![0]!++;
      return;
    }
    const next = Array.from({ length: n }, (_, node) => node)
      .filter((node) => on[node] === 0 && free[at]![node]! > 0)
      .toSorted((a, b) => free[at]![b]! - free[at]![a]! || a - b);
    for (const node of next) {
      free[at]![node]!--;
      path.push(node);
      on[node] = 1;
      extend(cycles);
      on[node] = 0;
      path.pop();
      free[at]![node]!++;
    }
  };
  extend(0);
  return best;
}
