/** A parsed configuration read by dotted paths; what nobody asked for is left over. */
import { RunError, isGroup, valueAt } from "../problem.ts";
import type { Unsupported } from "./interchange.ts";

/** Settings of a parsed TOML, YAML or JSON file. A null is a setting left out. */
export class SettingTree {
  readonly #config: unknown;
  readonly #asked = new Set<string>();
  readonly #refused: Unsupported[] = [];

  constructor(config: unknown) {
    this.#config = config;
  }

  /** Whatever stands at a path. */
  value(path: string): unknown {
    this.#asked.add(path);
    return valueAt(this.#config, path.split(".")) ?? undefined;
  }

  /**
   * A number, also one written as YAML 1.1 reads it and 1.2 does not: `1e-5`, `1_000`.
   * @throws RunError for anything else.
   */
  number(path: string): number | undefined {
    const value = this.value(path);
    if (value === undefined || typeof value === "number") return value;
    const text = typeof value === "string" ? value.replaceAll("_", "") : "";
    if (text.trim() === "" || Number.isNaN(Number(text))) throw wrong(path, value, "a number");
    return Number(text);
  }

  /** @throws RunError for anything but true and false. */
  flag(path: string): boolean | undefined {
    const value = this.value(path);
    if (value === undefined || typeof value === "boolean") return value;
    throw wrong(path, value, "true or false");
  }

  /** @throws RunError for anything but text. */
  text(path: string): string | undefined {
    const value = this.value(path);
    if (value === undefined || typeof value === "string") return value;
    throw wrong(path, value, "text");
  }

  /** Notes a setting that was understood and cannot be expressed. */
  refuse(option: string, value: unknown, reason: string): undefined {
    this.#refused.push({ option, value, reason });
  }

  /** What was refused, then every value that nobody asked for, in the order of the file. */
  unsupported(): readonly Unsupported[] {
    const leftOver = leaves(this.#config)
      .filter(({ path }) => !this.#wasAsked(path))
      .map(({ path, value }) => ({
        option: path,
        value,
        reason: "has no counterpart in a run description",
      }));
    return [...this.#refused, ...leftOver];
  }

  /** Whether a path was asked for, or a group that it is in. */
  #wasAsked(path: string): boolean {
    const keys = path.split(".");
    return keys.some((_, i) => this.#asked.has(keys.slice(0, i + 1).join(".")));
  }
}

/** Every value that is no group and not null, with its dotted path. */
function leaves(value: unknown, path = ""): { readonly path: string; readonly value: unknown }[] {
  if (value === null || value === undefined) return [];
  if (!isGroup(value) || Array.isArray(value) || value instanceof Date) {
    return path === "" ? [] : [{ path, value }];
  }
  return Object.entries(value).flatMap(([key, child]) =>
    leaves(child, path === "" ? key : `${path}.${key}`),
  );
}

function wrong(path: string, value: unknown, kind: string): RunError {
  return new RunError([{ path: path.split("."), value, rule: `must be ${kind}` }]);
}
