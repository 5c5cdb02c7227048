/**
 * Slurm's `topology.conf`, of the tree plugin (switches with their nodes and switches) and the block
 * plugin. The file states no capacities (Slurm ignores LinkSpeed), so a fabric from it takes them
 * as options.
 */
import { type BytesPerSecond, nearestName } from "@trireme/core";
import { type Cable, explicitFabric } from "../fabric/explicit.ts";
import type { Fabric } from "../fabric/fabric.ts";
import { FormatError } from "./format-error.ts";
import { expandHostList } from "./host-list.ts";

export interface SlurmSwitch {
  readonly name: string;
  readonly line: number;
  /** 1 for switches with nodes, then upwards. */
  readonly level: number;
  readonly nodes: readonly string[];
  readonly switches: readonly string[];
}

export type SlurmTopology =
  | {
      readonly kind: "tree";
      readonly switches: readonly SlurmSwitch[];
      /** All nodes, in order of the file. */
      readonly nodes: readonly string[];
    }
  | {
      readonly kind: "block";
      readonly blocks: readonly { readonly name: string; readonly nodes: readonly string[] }[];
      readonly sizes: readonly number[];
      readonly nodes: readonly string[];
    };

interface Entry {
  readonly line: number;
  readonly values: ReadonlyMap<string, string>;
}

const keys = ["SwitchName", "Nodes", "Switches", "LinkSpeed", "BlockName", "BlockSizes"];

/**
 * Parses a `topology.conf`.
 * @throws FormatError with line and reason: unknown keys, bad host lists, nodes or switches under two
 * parents, switches that are not defined, and circles.
 */
export function parseSlurmTopology(text: string, file = "topology.conf"): SlurmTopology {
  const entries = readEntries(text, file);
  const fail = (line: number, reason: string): never => {
    throw new FormatError(file, line, reason);
  };
  if (entries.length === 0) fail(1, "the file defines neither switches nor blocks");
  const names = (entry: Entry, key: string): readonly string[] => {
    const list = entry.values.get(key);
    if (list === undefined) return [];
    const expanded = expandHostList(list);
    return expanded.ok ? expanded.names : fail(entry.line, `${key}: ${expanded.reason}`);
  };
  const owner = new Map<string, string>();
  const nodes: string[] = [];
  const claim = (node: string, name: string, line: number): void => {
    const before = owner.get(node);
    if (before !== undefined) fail(line, `node "${node}" is under "${before}" and "${name}"`);
    owner.set(node, name);
    nodes.push(node);
  };

  if (entries.some((e) => e.values.has("BlockName") || e.values.has("BlockSizes"))) {
    const blocks: { name: string; nodes: readonly string[] }[] = [];
    let sizes: readonly number[] = [];
    for (const entry of entries) {
      const name = entry.values.get("BlockName");
      const given = entry.values.get("BlockSizes");
      if (given !== undefined) {
        if (!/^[1-9]\d*(,[1-9]\d*)*$/.test(given)) {
          fail(entry.line, `BlockSizes="${given}" is no list of sizes such as 4,16`);
        }
        sizes = given.split(",").map(Number);
      } else if (name === undefined)
        fail(entry.line, "a line of a block topology has no BlockName");
      else {
        const members = names(entry, "Nodes");
        if (members.length === 0) fail(entry.line, `block "${name}" has no Nodes`);
        if (blocks.some((b) => b.name === name)) fail(entry.line, `block "${name}" stands twice`);
        for (const node of members) claim(node, name, entry.line);
        blocks.push({ name, nodes: members });
      }
    }
    if (blocks.length === 0) fail(entries[0]!.line, "the file defines no blocks");
    return { kind: "block", blocks, sizes, nodes };
  }

  const drafts = new Map<string, Omit<SlurmSwitch, "level">>();
  for (const entry of entries) {
    const name = entry.values.get("SwitchName");
    if (name === undefined) return fail(entry.line, "the line has no SwitchName");
    if (drafts.has(name)) fail(entry.line, `switch "${name}" stands twice`);
    const draft = {
      name,
      line: entry.line,
      nodes: names(entry, "Nodes"),
      switches: names(entry, "Switches"),
    };
    if (draft.nodes.length + draft.switches.length === 0) {
      fail(entry.line, `switch "${name}" has neither Nodes nor Switches`);
    }
    for (const node of draft.nodes) claim(node, name, entry.line);
    drafts.set(name, draft);
  }
  const parent = new Map<string, string>();
  for (const { name, line, switches } of drafts.values()) {
    for (const child of switches) {
      if (!drafts.has(child)) {
        const nearest = nearestName(child, drafts.keys());
        fail(
          line,
          `switch "${name}" has the undefined switch "${child}"${nearest ? `; did you mean "${nearest}"?` : ""}`,
        );
      }
      const before = parent.get(child);
      if (before !== undefined) fail(line, `switch "${child}" is under "${before}" and "${name}"`);
      parent.set(child, name);
    }
  }
  const levels = new Map<string, number>();
  const levelOf = (name: string, above: readonly string[]): number => {
    const known = levels.get(name);
    if (known !== undefined) return known;
    const draft = drafts.get(name)!;
    if (above.includes(name)) fail(draft.line, `switch "${name}" is under itself`);
    let level = 1;
    for (const child of draft.switches)
      level = Math.max(level, 1 + levelOf(child, [...above, name]));
    levels.set(name, level);
    return level;
  };
  const switches = [...drafts.values()].map(
    ({ name, line, nodes: own, switches: below }): SlurmSwitch => ({
      name,
      line,
      level: levelOf(name, []),
      nodes: own,
      switches: below,
    }),
  );
  return { kind: "tree", switches, nodes };
}

export interface SlurmFabricOptions {
  /** Ports of a node; 1 when left out. */
  readonly nics?: number;
  /** Of one port, one direction. */
  readonly bandwidth: BytesPerSecond;
  /** Ports below a switch over its way up; 1 (non-blocking) when left out. */
  readonly oversubscription?: number;
}

/**
 * The fabric of a tree topology: endpoint = node · nics + nic, nodes in the file's order; the way up
 * of a switch is one cable as wide as the ports below it, over the over-subscription.
 */
export function slurmFabric(
  topology: Extract<SlurmTopology, { kind: "tree" }>,
  options: SlurmFabricOptions,
): Fabric {
  const { nics = 1, bandwidth, oversubscription = 1 } = options;
  const endpoints = topology.nodes.length * nics;
  const sorted = topology.switches.toSorted((x, y) => x.level - y.level);
  const place = new Map(sorted.map((s, i) => [s.name, endpoints + i]));
  const nodeNumber = new Map(topology.nodes.map((node, i) => [node, i]));
  const cables: Cable[] = [];
  /** Ports below each switch. */
  const below = new Map<string, number>();
  for (const s of sorted) {
    const at = place.get(s.name)!;
    let ports = s.nodes.length * nics;
    for (const node of s.nodes) {
      for (let n = 0; n < nics; n++) {
        cables.push({ a: nodeNumber.get(node)! * nics + n, b: at, bandwidth });
      }
    }
    for (const child of s.switches) {
      const width = below.get(child)!;
      ports += width;
      cables.push({
        a: place.get(child)!,
        b: at,
        bandwidth: (bandwidth * width) / oversubscription,
      });
    }
    below.set(s.name, ports);
  }
  const top = Math.max(...sorted.map((s) => s.level));
  const layers = Array.from({ length: top }, (_, l) => ({
    name: `level-${l + 1}`,
    switches: sorted.filter((s) => s.level === l + 1).length,
  }));
  return explicitFabric({ name: "slurm", endpoints, layers, cables });
}

/** Lines of `Key=Value` pairs, comments and continuations taken out. */
function readEntries(text: string, file: string): Entry[] {
  const entries: Entry[] = [];
  let pending = "";
  let start = 0;
  const lines = text.split(/\r?\n/);
  for (const [i, raw] of lines.entries()) {
    if (pending === "") start = i + 1;
    const line = pending + raw.replace(/(^|[^\\])#.*$/, "$1");
    if (/\\\s*$/.test(line)) {
      if (i === lines.length - 1)
        throw new FormatError(file, i + 1, "the last line ends in a continuation");
      pending = `${line.replace(/\\\s*$/, "")} `;
      continue;
    }
    pending = "";
    const values = new Map<string, string>();
    for (const pair of line.trim().split(/\s+/)) {
      if (pair === "") continue;
      const [, given, value] = /^([^=]+)=(\S+)$/.exec(pair) ?? [];
      if (given === undefined || value === undefined) {
        throw new FormatError(file, start, `"${pair}" is no Key=Value`);
      }
      const key = keys.find((k) => k.toLowerCase() === given.toLowerCase());
      if (key === undefined) {
        const nearest = nearestName(given, keys);
        throw new FormatError(
          file,
          start,
          `unknown key "${given}"; ${nearest ? `did you mean "${nearest}"?` : `known: ${keys.join(", ")}`}`,
        );
      }
      if (values.has(key)) throw new FormatError(file, start, `the key "${key}" stands twice`);
      values.set(key, value);
    }
    if (values.size > 0) entries.push({ line: start, values });
  }
  return entries;
}
