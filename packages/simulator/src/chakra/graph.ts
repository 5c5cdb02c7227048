/**
 * The graph of a whole workload: each rank's operations, with every collective joined over its ranks
 * and every receive tied to its send. Everything that could keep it from running to its end is found
 * here, before anything is simulated.
 */
import { TriremeError } from "@trireme/core";
import {
  type ChakraNode,
  type ChakraValue,
  chakraCollectives,
  chakraNodeTypes,
} from "./execution-trace.ts";
import type { ChakraWorkload } from "./export.ts";

/** An operation of one rank in the graph. */
export interface GraphNode {
  readonly rank: number;
  readonly node: ChakraNode;
  /** Graph nodes that must be over before this starts. */
  readonly after: readonly number[];
}

/** A checked workload. */
export interface WorkloadGraph {
  readonly nodes: readonly GraphNode[];
  /** Graph nodes of each collective, one of each member. */
  readonly collectives: readonly (readonly number[])[];
  /** Collective of a graph node; −1: none. */
  readonly collectiveOf: Int32Array;
  /** The send of a receive; −1 for other nodes. */
  readonly sendOf: Int32Array;
}

/**
 * Builds and checks the graph. The n-th collective of a group on one member goes with the n-th of the
 * others, and the n-th receive with the n-th send of its pair and tag.
 * @throws TriremeError "CHAKRA" naming the operation that is unsupported, unmatched or waits for what is
 * not there, and the cycle of operations where some wait for each other.
 */
export function workloadGraph(workload: ChakraWorkload): WorkloadGraph {
  const nodes: GraphNode[] = [];
  for (const [rank, { nodes: own }] of workload.traces.entries()) {
    const first = nodes.length;
    const place = new Map<number, number>();
    for (const [i, node] of own.entries()) {
      if (place.has(node.id)) fail(rank, node, `its id ${node.id} is not its own`);
      place.set(node.id, first + i);
    }
    for (const node of own) {
      check(workload, rank, node);
      const after = [...node.controlDependencies, ...node.dataDependencies].map((id) => {
        const found = place.get(id);
        return found ?? fail(rank, node, `it waits for node ${id}, which the rank does not have`);
      });
      nodes.push({ rank, node, after });
    }
  }
  const collectives = matchCollectives(workload, nodes);
  const collectiveOf = new Int32Array(nodes.length).fill(-1);
  collectives.forEach((members, c) => {
    for (const i of members) collectiveOf[i] = c;
  });
  const graph = { nodes, collectives, collectiveOf, sendOf: matchMessages(nodes) };
  checkCycles(graph);
  return graph;
}

function fail(rank: number, { name, id }: ChakraNode, why: string): never {
  throw new TriremeError("CHAKRA", `rank ${rank}, node ${id} "${name}": ${why}`);
}

const nodeTypes = new Set<number>(Object.values(chakraNodeTypes));
const collectiveTypes = new Set<unknown>(Object.values(chakraCollectives));

function check({ traces, groups }: ChakraWorkload, rank: number, node: ChakraNode): void {
  const { type, attributes, duration } = node;
  if (!nodeTypes.has(type)) fail(rank, node, `nodes of type ${type} are not supported`);
  if (!(duration >= 0 && duration < Infinity)) fail(rank, node, `it takes ${duration} s`);
  if (type === chakraNodeTypes.collective) {
    const { comm_type: kind, pg_name: group } = attributes;
    if (!collectiveTypes.has(kind))
      fail(rank, node, `collectives of type ${String(kind)} are not supported`);
    if (ofAll(group, groups)) return;
    const members = groups[String(group)];
    if (members === undefined) fail(rank, node, `there is no group "${String(group)}"`);
    if (!members.includes(rank)) fail(rank, node, `the rank is not in group "${String(group)}"`);
  } else if (type === chakraNodeTypes.send || type === chakraNodeTypes.receive) {
    const own = type === chakraNodeTypes.send ? "comm_src" : "comm_dst";
    const other = own === "comm_src" ? "comm_dst" : "comm_src";
    const peer = attributes[other];
    if (typeof peer !== "number" || !(peer in traces)) {
      fail(rank, node, `${other} ${String(peer)} is not in 0..${traces.length - 1}`);
    }
    if (attributes[own] !== undefined && attributes[own] !== rank) {
      fail(rank, node, `${own} is ${String(attributes[own])}`);
    }
  }
}

/** Collectives without a group, and of group "0" where none has that name, are of all ranks, as in ASTRA-sim. */
function ofAll(group: ChakraValue | undefined, groups: ChakraWorkload["groups"]): boolean {
  return (
    group === undefined || group === "" || (String(group) === "0" && groups["0"] === undefined)
  );
}

function matchCollectives(
  { traces, groups }: ChakraWorkload,
  nodes: readonly GraphNode[],
): number[][] {
  const everyone = traces.map((_, rank) => rank);
  const lists = new Map<string, Map<number, number[]>>();
  for (const [i, { rank, node }] of nodes.entries()) {
    if (node.type !== chakraNodeTypes.collective) continue;
    const name = node.attributes["pg_name"];
    const group = ofAll(name, groups) ? "" : String(name);
    let byRank = lists.get(group);
    if (byRank === undefined) lists.set(group, (byRank = new Map()));
    const own = byRank.get(rank);
    if (own === undefined) byRank.set(rank, [i]);
    else own.push(i);
  }
  const collectives: number[][] = [];
  for (const [group, byRank] of lists) {
    const members = groups[group] ?? everyone;
    const longest = [...byRank.values()].reduce((a, b) => (b.length > a.length ? b : a));
    for (const [n, one] of longest.entries()) {
      const { rank, node } = nodes[one]!;
      const joined = members.map((member) => {
        const i = byRank.get(member)?.[n];
        if (i === undefined) {
          fail(
            rank,
            node,
            `it is collective ${n} of group "${group}", but rank ${member} has only ${n} of them`,
          );
        }
        const other = nodes[i]!.node;
        for (const key of ["comm_type", "comm_size"]) {
          if (other.attributes[key] === node.attributes[key]) continue;
          fail(
            rank,
            node,
            `${key} ${String(node.attributes[key])}, but rank ${member} has "${other.name}" with ${String(other.attributes[key])} there`,
          );
        }
        return i;
      });
      collectives.push(joined);
    }
  }
  return collectives;
}

function matchMessages(nodes: readonly GraphNode[]): Int32Array {
  const sendOf = new Int32Array(nodes.length).fill(-1);
  const key = (from: number, to: number, tag: ChakraValue | undefined): string =>
    `${from} ${to} ${String(tag ?? 0)}`;
  const open = new Map<string, number[]>();
  for (const [i, { rank, node }] of nodes.entries()) {
    if (node.type !== chakraNodeTypes.send) continue;
    const name = key(rank, Number(node.attributes["comm_dst"]), node.attributes["comm_tag"]);
    const list = open.get(name);
    if (list === undefined) open.set(name, [i]);
    else list.push(i);
  }
  const taken = new Map<string, number>();
  for (const [i, { rank, node }] of nodes.entries()) {
    if (node.type !== chakraNodeTypes.receive) continue;
    const from = Number(node.attributes["comm_src"]);
    const name = key(from, rank, node.attributes["comm_tag"]);
    const n = taken.get(name) ?? 0;
    const send = open.get(name)?.[n];
    if (send === undefined) fail(rank, node, `rank ${from} never sends it`);
    const [own, other] = [node.attributes["comm_size"], nodes[send]!.node.attributes["comm_size"]];
    if (own !== other)
      fail(rank, node, `it takes ${String(own)} bytes, but ${String(other)} are sent`);
    taken.set(name, n + 1);
    sendOf[i] = send;
  }
  for (const [name, list] of open) {
    const extra = list[taken.get(name) ?? 0];
    if (extra === undefined) continue;
    const { rank, node } = nodes[extra]!;
    fail(rank, node, `rank ${String(node.attributes["comm_dst"])} never receives it`);
  }
  return sendOf;
}

/** Kahn's algorithm over operations, collectives as one; what is left over holds a cycle. */
function checkCycles({ nodes, collectives, collectiveOf, sendOf }: WorkloadGraph): void {
  const unit = (i: number): number => (collectiveOf[i]! < 0 ? i : nodes.length + collectiveOf[i]!);
  const before = (u: number): readonly number[] => {
    const members = u < nodes.length ? [u] : collectives[u - nodes.length]!;
    return members.flatMap((i) =>
      sendOf[i]! < 0 ? nodes[i]!.after : [...nodes[i]!.after, sendOf[i]!],
    );
  };
  const units = nodes.length + collectives.length;
  const waits = new Int32Array(units);
  const next: number[][] = Array.from({ length: units }, () => []);
  const ready: number[] = [];
  let left = 0;
  for (let u = 0; u < units; u++) {
    if (u < nodes.length && collectiveOf[u]! >= 0) continue;
    left++;
    for (const i of before(u)) {
      waits[u]!++;
      next[unit(i)]!.push(u);
    }
    if (waits[u] === 0) ready.push(u);
  }
  for (let u = ready.pop(); u !== undefined; u = ready.pop()) {
    left--;
    for (const v of next[u]!) if (--waits[v]! === 0) ready.push(v);
  }
  if (left === 0) return;
  // From any that is left, back along what is left, until one comes again.
  const path: number[] = [];
  let at = waits.findIndex((n) => n > 0);
  while (!path.includes(at)) {
    path.push(at);
    at = unit(before(at).find((i) => waits[unit(i)]! > 0)!);
  }
  const cycle = path.slice(path.indexOf(at));
  const shown = cycle.slice(0, 8).map((u) => {
    const i = u < nodes.length ? u : collectives[u - nodes.length]![0]!;
    const { rank, node } = nodes[i]!;
    return u < nodes.length ? `rank ${rank} "${node.name}"` : `collective "${node.name}"`;
  });
  const more = cycle.length > 8 ? `, and ${cycle.length - 8} more` : "";
  throw new TriremeError(
    "CHAKRA",
    `operations wait for each other in a circle: ${shown.join(" after ")} after ${shown[0]}${more}`,
  );
}
