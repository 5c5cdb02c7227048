/** Changes to a run description by path, as the command line gives them: `plan.tp=8`. */
import { formatPath, isGroup, type Path, type Problem, RunError } from "./problem.ts";

/** One change; `undefined` removes the key. */
export interface Override {
  readonly path: Path;
  readonly value: unknown;
}

/** Sections that may be written as one word, and the key that word is short for. */
const shorthands: Readonly<Record<string, string>> = { model: "preset", cluster: "host" };

/**
 * Reads `a.b=c`. The value is JSON where it is JSON (`8`, `true`, `[1, 2]`, `"8"`) and text
 * otherwise (`full`, `80 GiB`); `null` removes the key, so that its default stands. List positions
 * are written `a[0]`.
 *
 * @throws RunError when there is no path or no `=`.
 */
export function parseOverride(text: string): Override {
  const equals = text.indexOf("=");
  const path = text.slice(0, Math.max(0, equals)).trim();
  if (equals === -1 || !/^[^.[\]]+(\[\d+\])*(\.[^.[\]]+(\[\d+\])*)*$/.test(path)) {
    throw new RunError([
      {
        path: [],
        value: text,
        rule: "an override must be path=value",
        suggestion: "for example plan.tp=8",
      },
    ]);
  }
  const keys = path
    .split(/[.[\]]/)
    .filter((key) => key !== "")
    .map((key) => (/^\d+$/.test(key) && path.includes(`[${key}]`) ? Number(key) : key));
  const value = valueOf(text.slice(equals + 1).trim());
  return { path: keys, value: value === null ? undefined : value };
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * A copy of a description with changes made in order; sections on the way are created, and a
 * section written as one word becomes the group it is short for (`model: gpt2` with
 * `model.layers=4`). The schema judges the result.
 *
 * @throws RunError when a path leads through a value that has no keys, or past the end of a list.
 */
export function applyOverrides(description: unknown, overrides: readonly Override[]): unknown {
  let result = description;
  for (const override of overrides) result = set(result ?? {}, override, 0);
  return result;
}

function set(node: unknown, override: Override, depth: number): unknown {
  const { path, value } = override;
  const key = path[depth];
  if (key === undefined) return value;
  if (Array.isArray(node) && typeof key === "number") {
    if (key > node.length) throw new RunError([beyondList(node.length, override, depth)]);
    const copy: unknown[] = [...(node as readonly unknown[])];
    copy[key] = set(copy[key], override, depth + 1);
    return copy;
  }
  const group = asGroup(node, path.slice(0, depth));
  if (group === undefined) throw new RunError([noGroup(node, override, depth)]);
  const child = set(Object.hasOwn(group, key) ? group[key] : undefined, override, depth + 1);
  const entries = Object.entries(group).filter(([name]) => name !== key);
  if (child === undefined) return Object.fromEntries(entries);
  // A changed key keeps its place, so that problems stay in the order of the file.
  if (!Object.hasOwn(group, key)) return { ...group, [key]: child };
  return Object.fromEntries(
    Object.entries(group).map(([name, v]) => [name, name === key ? child : v]),
  );
}

function asGroup(
  node: unknown,
  path: Path,
): Readonly<Record<string | number, unknown>> | undefined {
  if (node === undefined || node === null) return {};
  if (isGroup(node) && !Array.isArray(node)) return node;
  const key = path.length === 1 ? shorthands[String(path[0])] : undefined;
  return typeof node === "string" && key !== undefined ? { [key]: node } : undefined;
}

/** A list grows by one value at a time: positions between would be holes. */
function beyondList(length: number, override: Override, depth: number): Problem {
  const list = formatPath(override.path.slice(0, depth));
  const last = length === 0 ? "is empty" : `has the positions 0 to ${length - 1}`;
  return {
    path: override.path.slice(0, depth + 1),
    value: override.value,
    rule: `${list} ${last}`,
    suggestion: `${list}[${length}] adds one`,
  };
}

function noGroup(node: unknown, override: Override, depth: number): Problem {
  const parent = override.path.slice(0, depth);
  return {
    path: parent,
    value: node,
    rule: `${formatPath(override.path)} cannot be set, because this has no keys`,
    suggestion: `set ${formatPath(parent)} itself`,
  };
}
