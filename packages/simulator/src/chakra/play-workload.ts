/** Plays a Chakra workload: every operation starts when all that it waits for is over. */
import { EventQueue, type Seconds, TriremeError } from "@trireme/core";
import {
  type Lane,
  type SpanKind,
  type Timeline,
  TimelineBuilder,
  categoryOf,
  spanKinds,
} from "@trireme/timeline";
import { type Cluster, hostIndex } from "@trireme/topology";
import {
  type ChakraCollective,
  type CommunicationTimes,
  type UniformNetwork,
  clusterTimes,
  uniformTimes,
} from "./communication.ts";
import { type ChakraNode, chakraCollectives, chakraNodeTypes } from "./execution-trace.ts";
import type { ChakraWorkload } from "./export.ts";
import { type WorkloadGraph, workloadGraph } from "./graph.ts";

/** How communication is timed: with neither cluster nor network, each takes the duration that its node has. */
export interface PlayWorkloadOptions {
  /** Prices communication, and says what stays inside a host. */
  readonly cluster?: Cluster;
  /** Prices communication in closed form, in place of a cluster. */
  readonly network?: UniformNetwork;
  /**
   * Sends and collectives of a rank under way at once, the first of its trace before others that are
   * ready; no limit when left out. ASTRA-sim 2 has 1.
   */
  readonly communications?: number;
}

/** What came of it. */
export interface PlayedWorkload {
  readonly time: Seconds;
  /** Operations simulated: as many as the workload has. */
  readonly operations: number;
  readonly timeline: Timeline;
}

/**
 * Plays a workload. Kernels of a rank run one after the other in the order in which they become ready;
 * memory operations run beside them, and communication beside both.
 * @throws TriremeError "CHAKRA", see `workloadGraph`; "NETWORK" for both a cluster and a network, or a
 * limit of communications that lets nothing through.
 */
export function playWorkload(
  workload: ChakraWorkload,
  options: PlayWorkloadOptions = {},
): PlayedWorkload {
  const { cluster, network, communications = Infinity } = options;
  const ranks = workload.traces.length;
  if (cluster !== undefined && network !== undefined) {
    throw new TriremeError("NETWORK", "a workload is played on a cluster or a network: give one");
  }
  if (!(communications >= 1)) {
    throw new TriremeError("NETWORK", `communications ${communications}: give at least 1`);
  }
  if (cluster !== undefined && ranks > cluster.devices) {
    throw new TriremeError(
      "CHAKRA",
      `${ranks} ranks, but the cluster has ${cluster.devices} devices`,
    );
  }
  return new WorkloadPlayer(workloadGraph(workload), ranks, options).run();
}

function timesOf({ cluster, network }: PlayWorkloadOptions): CommunicationTimes | undefined {
  if (network !== undefined) return uniformTimes(network);
  return cluster === undefined ? undefined : clusterTimes(cluster);
}

const collectiveNames = new Map<unknown, ChakraCollective>([
  [chakraCollectives["all-reduce"], "all-reduce"],
  [chakraCollectives["all-gather"], "all-gather"],
  [chakraCollectives.broadcast, "broadcast"],
  [chakraCollectives["all-to-all"], "all-to-all"],
  [chakraCollectives["reduce-scatter"], "reduce-scatter"],
  [chakraCollectives.barrier, "barrier"],
]);

class WorkloadPlayer {
  readonly #graph: WorkloadGraph;
  readonly #cluster: Cluster | undefined;
  readonly #times: CommunicationTimes | undefined;
  readonly #communications: number;
  readonly #queue: EventQueue;
  readonly #builder: TimelineBuilder;
  readonly #waits: Int32Array;
  readonly #next: readonly (readonly number[])[];
  readonly #start: Float64Array;
  /** Members of each collective that are still to come. */
  readonly #missing: Int32Array;
  /** Kernels that are ready by rank, and whether one runs. */
  readonly #ready: readonly number[][];
  readonly #busy: Uint8Array;
  /** Communication that is held back by rank, and how much of it is under way. */
  readonly #held: readonly number[][];
  readonly #underway: Int32Array;
  #done = 0;

  constructor(graph: WorkloadGraph, ranks: number, options: PlayWorkloadOptions) {
    const { nodes, collectives, sendOf } = graph;
    this.#graph = graph;
    this.#cluster = options.cluster;
    this.#times = timesOf(options);
    this.#communications = options.communications ?? Infinity;
    this.#queue = new EventQueue(nodes.length + 16);
    this.#builder = new TimelineBuilder({ capacity: nodes.length, ranks });
    this.#waits = new Int32Array(nodes.length);
    const next: number[][] = nodes.map(() => []);
    for (const [i, { after }] of nodes.entries()) {
      this.#waits[i] = after.length + (sendOf[i]! < 0 ? 0 : 1);
      for (const before of after) next[before]!.push(i);
      if (sendOf[i]! >= 0) next[sendOf[i]!]!.push(i);
    }
    this.#next = next;
    this.#start = new Float64Array(nodes.length);
    this.#missing = Int32Array.from(collectives, (members) => members.length);
    this.#ready = Array.from({ length: ranks }, () => []);
    this.#busy = new Uint8Array(ranks);
    this.#held = Array.from({ length: ranks }, () => []);
    this.#underway = new Int32Array(ranks);
  }

  run(): PlayedWorkload {
    const { nodes } = this.#graph;
    for (let i = 0; i < nodes.length; i++) if (this.#waits[i] === 0) this.#becomesReady(i);
    for (let rank = 0; rank < this.#held.length; rank++) this.#communicate(rank);
    while (this.#queue.size > 0) {
      const i = this.#queue.pop();
      const collective = this.#graph.collectiveOf[i]!;
      const ended = collective < 0 ? [i] : this.#graph.collectives[collective]!;
      for (const each of ended) this.#ends(each);
    }
    if (this.#done !== nodes.length) {
      throw new TriremeError("CHAKRA", `${nodes.length - this.#done} operations never started`);
    }
    return { time: this.#queue.now, operations: this.#done, timeline: this.#builder.finish() };
  }

  #becomesReady(i: number): void {
    const { rank, node } = this.#graph.nodes[i]!;
    this.#start[i] = this.#queue.now;
    if (node.type === chakraNodeTypes.compute) {
      this.#ready[rank]!.push(i);
      this.#compute(rank);
    } else if (occupies(node)) this.#held[rank]!.push(i);
    else this.#begin(i);
  }

  /** Lets what a rank holds back start, in the order of its trace, while there is room. */
  #communicate(rank: number): void {
    const held = this.#held[rank]!;
    while (held.length > 0 && this.#underway[rank]! < this.#communications) {
      let first = 0;
      for (let k = 1; k < held.length; k++) if (held[k]! < held[first]!) first = k;
      this.#underway[rank]!++;
      this.#begin(held.splice(first, 1)[0]!);
    }
  }

  /** Lets what is not computed start. */
  #begin(i: number): void {
    const { now } = this.#queue;
    const { rank, node } = this.#graph.nodes[i]!;
    const collective = this.#graph.collectiveOf[i]!;
    this.#start[i] = now;
    if (collective < 0) {
      // A receive is over when its send is.
      const time = node.type === chakraNodeTypes.receive ? 0 : this.#sendTime(rank, node);
      this.#queue.push(now + time, i);
    } else if (--this.#missing[collective]! === 0) {
      const members = this.#graph.collectives[collective]!;
      for (const each of members) this.#start[each] = now;
      this.#queue.push(now + this.#collectiveTime(members, node), i);
    }
  }

  #compute(rank: number): void {
    if (this.#busy[rank] === 1) return;
    const i = this.#ready[rank]!.shift();
    if (i === undefined) return;
    this.#busy[rank] = 1;
    this.#start[i] = this.#queue.now;
    this.#queue.push(this.#queue.now + this.#graph.nodes[i]!.node.duration, i);
  }

  #ends(i: number): void {
    const { rank, node } = this.#graph.nodes[i]!;
    this.#done++;
    this.#builder.add({
      rank,
      lane: this.#lane(i),
      kind: kindOf(node),
      action: node.name,
      start: this.#start[i]!,
      end: this.#queue.now,
      bytes: sizeOf(node),
    });
    if (node.type === chakraNodeTypes.compute) this.#busy[rank] = 0;
    if (occupies(node)) this.#underway[rank]!--;
    for (const next of this.#next[i]!) if (--this.#waits[next]! === 0) this.#becomesReady(next);
    if (node.type === chakraNodeTypes.compute) this.#compute(rank);
    this.#communicate(rank);
  }

  #sendTime(rank: number, node: ChakraNode): Seconds {
    if (this.#times === undefined || node.type !== chakraNodeTypes.send) return node.duration;
    return this.#times.send(rank, Number(node.attributes["comm_dst"]), sizeOf(node));
  }

  #collectiveTime(members: readonly number[], node: ChakraNode): Seconds {
    const name = collectiveNames.get(node.attributes["comm_type"])!;
    const ranks = members.map((i) => this.#graph.nodes[i]!.rank);
    // An all-gather's size is that of one part.
    const bytes = sizeOf(node) * (name === "all-gather" ? ranks.length : 1);
    return this.#times?.collective(name, ranks, bytes) ?? node.duration;
  }

  #lane(i: number): Lane {
    const { rank, node } = this.#graph.nodes[i]!;
    if (node.type === chakraNodeTypes.compute) return "compute";
    if (node.type === chakraNodeTypes.load || node.type === chakraNodeTypes.store) return "copy";
    const cluster = this.#cluster;
    if (cluster === undefined) return "inter";
    const collective = this.#graph.collectiveOf[i]!;
    const peer = node.type === chakraNodeTypes.send ? "comm_dst" : "comm_src";
    const others =
      collective < 0
        ? [Number(node.attributes[peer])]
        : this.#graph.collectives[collective]!.map((m) => this.#graph.nodes[m]!.rank);
    const host = hostIndex(cluster, rank);
    return others.every((other) => hostIndex(cluster, other) === host) ? "intra" : "inter";
  }
}

/** Whether it counts as communication of its rank that is under way. */
function occupies({ type }: ChakraNode): boolean {
  return type === chakraNodeTypes.send || type === chakraNodeTypes.collective;
}

function sizeOf(node: ChakraNode): number {
  const size = node.attributes["comm_size"] ?? node.attributes["tensor_size"];
  return typeof size === "number" ? Math.max(0, size) : 0;
}

function kindOf(node: ChakraNode): SpanKind {
  switch (node.type) {
    case chakraNodeTypes.send:
      return "send";
    case chakraNodeTypes.receive:
      return "receive";
    case chakraNodeTypes.collective:
      return collectiveNames.get(node.attributes["comm_type"])!;
    case chakraNodeTypes.compute: {
      // Chakra does not say what a kernel is for; our own traces do.
      const kind = spanKinds.find((each) => each === node.attributes["kind"]);
      return kind !== undefined && categoryOf(kind) === "compute" ? kind : "forward";
    }
    default:
      return "load";
  }
}
