/**
 * The inside of a host: accelerators, NICs, scale-up switches, PCIe switches and NUMA domains, and
 * the wires between them. Two accelerators talk over scale-up wires where those join them, and else
 * over PCIe and memory; among the ways of a class the one with the fewest wires is taken, and of
 * those the widest.
 */
import { TriremeError } from "@trireme/core";
import type { Link, LinkKind } from "./link.ts";

/** "switch" is a scale-up switch (NVSwitch), "pcie" a PCIe switch, "numa" a processor with memory. */
export type PartKind = "accelerator" | "nic" | "switch" | "pcie" | "numa";

export interface Part {
  readonly kind: PartKind;
  readonly name: string;
}

/** A wire between two parts, by index; the link is one direction's, the same both ways. */
export interface Wire {
  readonly a: number;
  readonly b: number;
  readonly link: Link;
}

/** The i-th part of kind "accelerator" is device i of the host, the i-th of kind "nic" its NIC i. */
export interface Interior {
  readonly parts: readonly Part[];
  readonly wires: readonly Wire[];
}

/** Kinds of wire that join accelerators; of these, all but NVLink and Ethernet are forwarded by accelerators. */
const scaleUpKinds: ReadonlySet<LinkKind> = new Set(["nvlink", "xgmi", "xelink", "ici", "roce"]);
const forwardedKinds: ReadonlySet<LinkKind> = new Set(["xgmi", "xelink", "ici"]);

/** Parts of one kind, as indexes into `parts`. */
export function partsOf(interior: Interior, kind: PartKind): number[] {
  return interior.parts.flatMap((part, i) => (part.kind === kind ? [i] : []));
}

/**
 * Checks an interior by its own rules and returns it.
 * @throws TriremeError "HOST" on a wire to an unknown part or to itself, a name that stands twice,
 * or a part that nothing reaches.
 */
export function defineInterior(interior: Interior): Interior {
  const { parts, wires } = interior;
  const names = new Set<string>();
  for (const { name } of parts) {
    if (names.has(name))
      throw new TriremeError("HOST", `two parts of the host are called "${name}"`);
    names.add(name);
  }
  for (const { a, b } of wires) {
    if (!parts[a] || !parts[b] || a === b) {
      throw new TriremeError(
        "HOST",
        `a wire joins parts ${a} and ${b}; they must be two of 0..${parts.length - 1}`,
      );
    }
  }
  if (parts.length > 0) {
    const { hops } = walk(interior, 0, () => true);
    const lost = hops.indexOf(Infinity);
    if (lost >= 0) {
      throw new TriremeError("HOST", `nothing joins "${parts[lost]!.name}" to "${parts[0]!.name}"`);
    }
  }
  return interior;
}

/**
 * The way between two accelerators of a host, as one link: the narrowest wire's bandwidth and the
 * sum of the latencies. Undefined when nothing joins them.
 */
export function linkInside(interior: Interior, from: number, to: number): Link | undefined {
  const devices = partsOf(interior, "accelerator");
  const [source, target] = [devices[from], devices[to]];
  if (source === undefined || target === undefined) return undefined;
  const scaleUp = walk(interior, source, (wire, at) => scaleUpStep(interior, wire, at, source));
  if (scaleUp.hops[target]! < Infinity) return linkOf(scaleUp, target);
  // Over PCIe: accelerators and NICs end a way.
  const any = walk(interior, source, (wire, at) => {
    const { kind } = interior.parts[at]!;
    const ends = kind === "accelerator" || kind === "nic";
    return (at === source || !ends) && !scaleUpKinds.has(wire.link.kind);
  });
  if (any.hops[target] === Infinity) return undefined;
  return { ...linkOf(any, target), kind: "pcie" };
}

/** NICs nearest to an accelerator: those the fewest wires away, and of these the widest. */
export function nearestNics(interior: Interior, device: number): number[] {
  const source = partsOf(interior, "accelerator")[device];
  if (source === undefined) return [];
  const nics = partsOf(interior, "nic");
  const { hops, width } = walk(interior, source, () => true);
  const least = Math.min(...nics.map((n) => hops[n]!));
  const widest = Math.max(...nics.map((n) => (hops[n] === least ? width[n]! : 0)));
  return nics.flatMap((n, i) => (hops[n] === least && width[n] === widest ? [i] : []));
}

/** NUMA domain of an accelerator, as the number of the part of kind "numa"; undefined without. */
export function numaOf(interior: Interior, device: number): number | undefined {
  const source = partsOf(interior, "accelerator")[device];
  if (source === undefined) return undefined;
  const { hops } = walk(interior, source, () => true);
  let best: number | undefined;
  let least = Infinity;
  for (const [i, n] of partsOf(interior, "numa").entries()) {
    if (hops[n]! < least) [best, least] = [i, hops[n]!];
  }
  return best;
}

interface Ways {
  readonly hops: number[];
  readonly width: number[];
  readonly latency: number[];
  /** Kind of the narrowest wire. */
  readonly kind: LinkKind[];
}

/** Fewest wires from `source` to every part, the widest of those ways, over wires that may be taken. */
function walk(
  { parts, wires }: Interior,
  source: number,
  mayTake: (wire: Wire, at: number) => boolean,
): Ways {
  const ways: Ways = {
    hops: parts.map(() => Infinity),
    width: parts.map(() => 0),
    latency: parts.map(() => Infinity),
    kind: parts.map(() => "local" as const),
  };
  ways.hops[source] = 0;
  ways.width[source] = Infinity;
  ways.latency[source] = 0;
  let frontier = [source];
  for (let hop = 1; frontier.length > 0; hop++) {
    const reached = new Set<number>();
    for (const at of frontier) {
      for (const wire of wires) {
        if ((wire.a !== at && wire.b !== at) || !mayTake(wire, at)) continue;
        const to = wire.a === at ? wire.b : wire.a;
        const width = Math.min(ways.width[at]!, wire.link.bandwidth);
        if (ways.hops[to]! < hop || (ways.hops[to] === hop && ways.width[to]! >= width)) continue;
        ways.hops[to] = hop;
        ways.width[to] = width;
        ways.latency[to] = ways.latency[at]! + wire.link.latency;
        ways.kind[to] = wire.link.bandwidth === width ? wire.link.kind : ways.kind[at]!;
        reached.add(to);
      }
    }
    frontier = [...reached];
  }
  return ways;
}

function scaleUpStep({ parts }: Interior, wire: Wire, at: number, source: number): boolean {
  const to = parts[wire.a === at ? wire.b : wire.a]!.kind;
  if (!scaleUpKinds.has(wire.link.kind) || (to !== "accelerator" && to !== "switch")) return false;
  // NVLink and Ethernet end at the accelerator they are wired to; a switch forwards everything.
  return at === source || parts[at]!.kind === "switch" || forwardedKinds.has(wire.link.kind);
}

function linkOf(ways: Ways, target: number): Link {
  return {
    kind: ways.kind[target]!,
    bandwidth: ways.width[target]!,
    latency: ways.latency[target]!,
  };
}
