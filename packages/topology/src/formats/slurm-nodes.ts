/** The nodes that `scontrol show nodes` prints, in its many-line form and in its one-line form (-o). */
import { type Bytes, MiB } from "@trireme/core";
import { FormatError } from "./format-error.ts";
import type { InventoryHost } from "./inventory.ts";

export interface SlurmNode extends InventoryHost {
  readonly cpus: number;
  readonly memory: Bytes;
  /** State words as printed: IDLE, DRAIN, …; a trailing sign such as `*` (no answer) is its own. */
  readonly states: readonly string[];
  readonly partitions: readonly string[];
  readonly features: readonly string[];
}

const baseStates = new Set(
  "ALLOCATED COMPLETING DOWN ERROR FUTURE IDLE MIXED PLANNED RESERVED UNKNOWN".split(" "),
);
const flags = new Set(
  "BLOCKED CLOUD COMPLETING DRAIN DYNAMIC_FUTURE DYNAMIC_NORM FAIL INVAL INVALID_REG MAINTENANCE MAINT NOT_RESPONDING NO_RESPOND PERFCTRS PLANNED POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN POWER_UP REBOOT_ISSUED REBOOT_REQUESTED RESERVED RESUME UNDRAIN".split(
    " ",
  ),
);
/** Words and flags under which a node takes no work. */
const away = new Set(
  "DOWN ERROR FUTURE UNKNOWN DRAIN FAIL INVAL INVALID_REG MAINTENANCE MAINT NOT_RESPONDING NO_RESPOND POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN POWER_UP REBOOT_ISSUED * ~ ! %".split(
    " ",
  ),
);
/** Fields whose value is free text to the end of the line. */
const freeText = /^(OS|Reason|Comment|Extra|AdminComment)=/;

/**
 * Parses the output of `scontrol show nodes`.
 * @throws FormatError with line and reason.
 */
export function parseSlurmNodes(text: string, file = "scontrol show nodes"): SlurmNode[] {
  const nodes: SlurmNode[] = [];
  const seen = new Set<string>();
  let record: { line: number; fields: Map<string, Field> } | undefined;
  const finish = (): void => {
    if (!record) return;
    const node = nodeOf(record.fields, record.line, file);
    if (seen.has(node.name))
      throw new FormatError(file, record.line, `node "${node.name}" stands twice`);
    seen.add(node.name);
    nodes.push(node);
    record = undefined;
  };
  for (const [i, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === "") {
      finish();
      continue;
    }
    if (line.startsWith("NodeName=")) {
      finish();
      record = { line: i + 1, fields: new Map() };
    }
    if (!record) throw new FormatError(file, i + 1, `"${line.slice(0, 40)}" before any NodeName=`);
    for (const [key, value] of fieldsOf(line, i + 1, file)) {
      if (record.fields.has(key)) {
        throw new FormatError(
          file,
          i + 1,
          `${key} stands twice in node ${record.fields.get("NodeName")?.value}`,
        );
      }
      record.fields.set(key, { value, line: i + 1 });
    }
  }
  finish();
  if (nodes.length === 0) throw new FormatError(file, 1, "no NodeName= in the file");
  return nodes;
}

/** Splits a line at the next `Key=`, but not inside free text. */
function fieldsOf(line: string, at: number, file: string): [string, string][] {
  const fields: [string, string][] = [];
  let rest = line;
  while (rest !== "") {
    const [, key] = /^([A-Za-z][A-Za-z0-9_]*)=/.exec(rest) ?? [];
    if (key === undefined) {
      throw new FormatError(file, at, `"${rest.slice(0, 40)}" is no Key=Value`);
    }
    const value = rest.slice(key.length + 1);
    // In the one-line form the operating system's text ends where RealMemory begins.
    const end = freeText.test(rest)
      ? value.search(/\s+(?=(?:RealMemory|Sockets|Boards|State|BootTime)=)/)
      : value.search(/\s+(?=[A-Za-z][A-Za-z0-9_]*=)|\s+\[/);
    const own = end < 0 ? value : value.slice(0, end);
    fields.push([key, own.trim()]);
    rest = end < 0 ? "" : value.slice(end).trim();
    // The signature after a reason: [root@2024-05-01T10:00:00].
    if (rest.startsWith("[")) rest = "";
  }
  return fields;
}

interface Field {
  readonly value: string;
  readonly line: number;
}

function nodeOf(fields: ReadonlyMap<string, Field>, line: number, file: string): SlurmNode {
  const name = fields.get("NodeName")!.value;
  const fail = (key: string, reason: string): never => {
    throw new FormatError(file, fields.get(key)?.line ?? line, `node "${name}": ${reason}`);
  };
  const need = (key: string): string => fields.get(key)?.value ?? fail(key, `${key} is missing`);
  const count = (key: string): number => {
    const value = need(key);
    return /^\d+$/.test(value) ? Number(value) : fail(key, `${key}=${value} is no count`);
  };
  const list = (key: string): string[] => {
    const value = fields.get(key)?.value;
    return value === undefined || value === "(null)" ? [] : value.split(",");
  };
  if (name === "") fail("NodeName", "NodeName is empty");
  const states: string[] = [];
  for (const word of need("State").split("+")) {
    const [, base = "", sign = ""] = /^([A-Z_]+)([*~#!%$@^-]*)$/.exec(word) ?? [];
    const known = states.length === 0 ? baseStates.has(base) : flags.has(base);
    if (!known) fail("State", `State has the unknown word "${word}"`);
    states.push(base, ...sign.split(""));
  }
  const gpus = gpusOf(need("Gres"));
  if (!gpus.ok) return fail("Gres", gpus.reason);
  return {
    name,
    accelerator: gpus.type,
    accelerators: gpus.count,
    ready: !states.some((s) => away.has(s)),
    cpus: count("CPUTot"),
    memory: MiB(count("RealMemory")),
    states,
    partitions: list("Partitions"),
    features: list("AvailableFeatures"),
  };
}

type Gpus =
  | { readonly ok: true; readonly type: string | undefined; readonly count: number }
  | { readonly ok: false; readonly reason: string };

/** GPUs of a Gres value such as `gpu:a100:8(S:0-1),nvme:1`; one type a node. */
function gpusOf(gres: string): Gpus {
  let type: string | undefined;
  let count = 0;
  if (gres === "(null)" || gres === "") return { ok: true, type, count };
  for (const item of gres.split(/,(?![^(]*\))/)) {
    const [, kind, label, number] =
      /^([A-Za-z_]\w*)(?::([A-Za-z_][\w.-]*))?(?::(\d+)[KMGT]?)?(?:\([^()]*\))?$/.exec(item) ?? [];
    if (kind === undefined)
      return { ok: false, reason: `Gres item "${item}" is not name:type:count` };
    if (kind !== "gpu") continue;
    if (count > 0 && label !== type) {
      return { ok: false, reason: `Gres has GPUs of two types, "${type}" and "${label}"` };
    }
    type = label;
    count += number === undefined ? 1 : Number(number);
  }
  return { ok: true, type, count };
}
