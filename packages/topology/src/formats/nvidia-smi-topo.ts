/** The matrix of `nvidia-smi topo -m`: how the GPUs and NICs of a host reach each other. */
import { FormatError } from "./format-error.ts";

/** What is between two devices, from the nearest: X is the device itself, NV a number of NVLinks. */
export type Relation =
  | { readonly kind: "X" | "PIX" | "PXB" | "PHB" | "NODE" | "SYS" }
  | { readonly kind: "NV"; readonly links: number };

/** The matrix as printed. */
export interface TopoMatrix {
  /** Names of the header: GPU0, …, then NICs. */
  readonly devices: readonly string[];
  readonly gpus: number;
  /** `relations[i][j]` of devices i and j; symmetric. */
  readonly relations: readonly (readonly Relation[])[];
  /** Per GPU, as printed; undefined where the column is missing or says N/A. */
  readonly cpuAffinity: readonly (string | undefined)[];
  readonly numaAffinity: readonly (string | undefined)[];
  /** Name of the network device of each NIC, from the NIC legend; the header's name without one. */
  readonly nicNames: readonly string[];
}

/**
 * Parses the output of `nvidia-smi topo -m`, with or without terminal escapes.
 * @throws FormatError with line and reason.
 */
export function parseNvidiaSmiTopo(text: string, file = "nvidia-smi topo -m"): TopoMatrix {
  // oxlint-disable-next-line no-control-regex -- the header is underlined on a terminal
  const lines = text.replaceAll(/\u001b\[[0-9;]*m/g, "").split(/\r?\n/);
  const fail = (line: number, reason: string): never => {
    throw new FormatError(file, line + 1, reason);
  };
  const top = lines.findIndex((line) => /^\s*GPU0\b/.test(line));
  if (top < 0) return fail(0, "no header: a line that starts with GPU0");
  const words = lines[top]!.trim().split(/\s+/);
  const end = words.findIndex((w) => w === "CPU" || w === "NUMA" || w === "GPU");
  const devices = end < 0 ? words : words.slice(0, end);
  const columns = end < 0 ? "" : words.slice(end).join(" ");
  if (!/^(CPU Affinity( NUMA Affinity( GPU NUMA ID)?)?)?$/.test(columns)) {
    fail(top, `unknown columns "${columns}" after the devices`);
  }
  const affinities = (columns.match(/Affinity|ID/g) ?? []).length;
  const gpus = devices.filter((d) => /^GPU\d+$/.test(d)).length;
  for (const [i, d] of devices.entries()) {
    if (i < gpus ? d !== `GPU${i}` : d.startsWith("GPU")) {
      fail(top, `device "${d}" in column ${i + 1} of the header; GPUs come first and in order`);
    }
  }
  const relations: Relation[][] = [];
  const cpuAffinity: (string | undefined)[] = [];
  const numaAffinity: (string | undefined)[] = [];
  for (const [i, device] of devices.entries()) {
    const line = top + 1 + i;
    const [name, ...cells] = cellsOf(lines[line] ?? "", columns);
    if (name !== device) {
      fail(
        Math.min(line, lines.length - 1),
        `expected the row of ${device}, found "${name ?? ""}"`,
      );
    }
    const rest = cells.slice(devices.length);
    const expected = i < gpus ? affinities : 0;
    // Rows of NICs end in empty cells, or in none.
    while (rest.length > expected && rest.at(-1) === "") rest.pop();
    if (cells.length < devices.length || rest.length !== expected) {
      fail(
        line,
        `row ${device} has ${Math.min(cells.length, devices.length) + rest.length} entries; ${devices.length} relations and ${expected} affinities are due`,
      );
    }
    relations.push(
      cells.slice(0, devices.length).map((cell, j) => {
        const relation =
          relationOf(cell) ?? fail(line, `row ${device}: unknown relation "${cell}"`);
        if ((relation.kind === "X") !== (i === j)) {
          fail(
            line,
            `row ${device}: "${cell}" towards ${devices[j]}; X stands on the diagonal only`,
          );
        }
        const mirror = relations[j]?.[i];
        if (mirror && cellOf(mirror) !== cellOf(relation)) {
          fail(
            line,
            `row ${device}: "${cell}" towards ${devices[j]}, whose row says "${cellOf(mirror)}"`,
          );
        }
        return relation;
      }),
    );
    if (i >= gpus) continue;
    if (rest[0] && !/^(N\/A|\d+(-\d+)?(,\d+(-\d+)?)*)$/.test(rest[0])) {
      fail(line, `row ${device}: CPU affinity "${rest[0]}" is no list of cores such as 0-31,64-95`);
    }
    if (rest[1] && !/^(N\/A|\d+(-\d+)?(,\d+(-\d+)?)*)$/.test(rest[1])) {
      fail(line, `row ${device}: NUMA affinity "${rest[1]}" is no list of nodes such as 0-1`);
    }
    const [cpu, numa] = rest.map((cell) => (cell === "N/A" || cell === "" ? undefined : cell));
    cpuAffinity.push(cpu);
    numaAffinity.push(numa);
  }
  const nicNames = devices.slice(gpus);
  for (const [i, line] of lines.entries()) {
    if (i <= top + devices.length || !/^\s*NIC\d+\s*:/.test(line)) {
      if (i > top + devices.length) checkLegend(line, (reason) => fail(i, reason));
      continue;
    }
    const [, nic, name] = /^\s*(NIC\d+)\s*:\s*(\S+)\s*$/.exec(line) ?? [];
    const at = nic === undefined ? -1 : devices.indexOf(nic);
    if (at < gpus || name === undefined) {
      fail(i, `NIC legend "${line.trim()}" names no NIC of the header`);
    } else nicNames[at - gpus] = name;
  }
  return { devices, gpus, relations, cpuAffinity, numaAffinity, nicNames };
}

/**
 * Cells of a row. Between tabs a cell may be empty, as the affinity of a GPU outside the cores of
 * its container is; a print whose tabs have become spaces has no empty cells.
 */
function cellsOf(line: string, columns: string): string[] {
  if (!line.includes("\t")) return line.trim().split(/\s+/);
  const cells = line.split("\t").map((cell) => cell.trim());
  // nvidia-smi puts two tabs before the last of three columns.
  if (columns.endsWith("ID") && cells.at(-2) === "" && cells.at(-1) !== "") cells.splice(-2, 1);
  return cells;
}

function relationOf(cell: string): Relation | undefined {
  const links = /^NV([1-9]\d*)$/.exec(cell)?.[1];
  if (links !== undefined) return { kind: "NV", links: Number(links) };
  // Drivers before 2017 say SOC (socket) for SYS.
  const modern = cell === "SOC" ? "SYS" : cell;
  const kind = (["X", "PIX", "PXB", "PHB", "NODE", "SYS"] as const).find((k) => k === modern);
  return kind && { kind };
}

function cellOf(relation: Relation): string {
  return relation.kind === "NV" ? `NV${relation.links}` : relation.kind;
}

/** Lines after the matrix are the legend's, or empty. */
function checkLegend(line: string, fail: (reason: string) => void): void {
  const known = /^\s*($|Legend:|NIC Legend:|(X|SYS|SOC|NODE|PHB|PXB|PIX|NV#)\s+=\s+\S)/;
  if (!known.test(line)) fail(`"${line.trim()}" is neither a row of the matrix nor its legend`);
}
