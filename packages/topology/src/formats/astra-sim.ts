/**
 * ASTRA-sim 2 (Won et al., ISPASS 2023): the analytical backend's network YAML, one entry a
 * dimension, and the logical topology JSON of the ns-3 backend. Bandwidths are GB/s of one link and
 * direction, latencies ns of one link. Needs the package `yaml` (`npm install yaml`).
 */
import { type BytesPerSecond, type Seconds, GBps, ns } from "@trireme/core";
import { type Located, LocatedReader, parseLocatedJson } from "./located.ts";
import { parseLocatedYaml } from "./located-yaml.ts";

export type AstraBlock = "Ring" | "FullyConnected" | "Switch";

export interface AstraDimension {
  readonly topology: AstraBlock;
  readonly npus: number;
  readonly bandwidth: BytesPerSecond;
  readonly latency: Seconds;
}

/** Dimensions from the innermost; NPUs are their product, the first varying fastest. */
export interface AstraNetwork {
  readonly dimensions: readonly AstraDimension[];
}

const blocks: readonly AstraBlock[] = ["Ring", "FullyConnected", "Switch"];
const keys = ["topology", "npus_count", "bandwidth", "latency"];

/**
 * Parses a network YAML.
 * @throws FormatError with line and reason.
 */
export function parseAstraNetwork(text: string, file = "network.yml"): AstraNetwork {
  const root = parseLocatedYaml(text, file);
  const read = new LocatedReader(file);
  read.only(root, keys, "the network");
  const column = (key: string): readonly Located[] =>
    read.list(read.need(root, key, "the network"), key);
  const topology = column("topology");
  if (topology.length === 0) read.fail(root, "topology has no dimensions");
  for (const key of keys) {
    const entries = column(key).length;
    if (entries !== topology.length) {
      read.fail(
        read.need(root, key, "the network"),
        `${key} has ${entries} entries, but topology has ${topology.length}`,
      );
    }
  }
  const cell = (key: string, d: number): Located => column(key)[d]!;
  const number = (key: string, d: number): number => read.number(cell(key, d), key);
  const dimensions = topology.map((at, d): AstraDimension => {
    const name = read.text(at, "topology");
    const block = blocks.find((b) => b === name);
    if (!block) return read.fail(at, `unknown topology "${name}"; known: ${blocks.join(", ")}`);
    const npus = number("npus_count", d);
    if (!Number.isSafeInteger(npus) || npus < 1) {
      read.fail(cell("npus_count", d), `npus_count ${npus}; use an integer from 1 up`);
    }
    const bandwidth = number("bandwidth", d);
    if (!(bandwidth > 0 && bandwidth < Infinity)) {
      read.fail(cell("bandwidth", d), `bandwidth ${bandwidth} GB/s; it must be above 0`);
    }
    const latency = number("latency", d);
    if (!(latency >= 0 && latency < Infinity)) {
      read.fail(cell("latency", d), `latency ${latency} ns; it must be 0 or more`);
    }
    return { topology: block, npus, bandwidth: GBps(bandwidth), latency: ns(latency) };
  });
  return { dimensions };
}

/** The network YAML of dimensions; reading it back gives the same. */
export function printAstraNetwork(network: AstraNetwork): string {
  const row = (value: (d: AstraDimension) => string | number): string =>
    `[ ${network.dimensions.map(value).join(", ")} ]`;
  return [
    `topology: ${row((d) => d.topology)}`,
    `npus_count: ${row((d) => d.npus)}`,
    `bandwidth: ${row((d) => decimal(d.bandwidth / 1e9))}  # GB/s`,
    `latency: ${row((d) => decimal(d.latency * 1e9))}  # ns`,
    "",
  ].join("\n");
}

/**
 * Parses a logical topology JSON, `{"logical-dims": ["8", "4"]}`: NPUs per dimension.
 * @throws FormatError with line and reason.
 */
export function parseAstraLogical(text: string, file = "logical_topology.json"): number[] {
  const read = new LocatedReader(file);
  const root = parseLocatedJson(text, file);
  read.only(root, ["logical-dims"], "the topology");
  const dims = read.list(read.need(root, "logical-dims", "the topology"), "logical-dims");
  if (dims.length === 0) read.fail(root, "logical-dims has no dimensions");
  return dims.map((at) => {
    const value = read.text(at, "a dimension");
    if (!/^[1-9]\d{0,14}$/.test(value)) {
      read.fail(at, `dimension "${value}" is no integer from 1 up`);
    }
    return Number(value);
  });
}

/** The logical topology JSON of NPUs per dimension. */
export function printAstraLogical(dimensions: readonly number[]): string {
  return `${JSON.stringify({ "logical-dims": dimensions.map(String) }, undefined, 2)}\n`;
}

/** A number without the noise of its conversion: fifteen digits hold what a file says. */
function decimal(n: number): number {
  return Number(n.toPrecision(15));
}
