/** What resolving collects on its way: problems, and values that the file did not state. */
import { TriremeError } from "@trireme/core";
import { type Path, type Problem, valueAt } from "./problem.ts";
import type { Derivation } from "./resolved.ts";

export class Resolution {
  readonly problems: Problem[] = [];
  readonly derived: Derivation[] = [];

  /** Notes a broken rule. */
  problem(path: Path, value: unknown, rule: string, suggestion?: string): undefined {
    this.problems.push({ path, value, rule, ...(suggestion === undefined ? {} : { suggestion }) });
  }

  /** The written value, or else the derived one, noted with where it comes from. */
  orElse<T extends string | number | boolean>(
    path: Path,
    written: T | undefined,
    value: T,
    from: string,
  ): T {
    if (written !== undefined) return written;
    this.derived.push({ path, value, from });
    return value;
  }

  /** The result of a neighbour's function; its refusal becomes a problem at `path`. */
  attempt<T>(path: Path, value: unknown, make: () => T): T | undefined {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof TriremeError)) throw error;
      this.problems.push(atField(path, value, error.message));
      return undefined;
    }
  }
}

/** A refusal that opens with a field and its number (`globalBatch 6 is not …`) is about that field. */
function atField(path: Path, value: unknown, message: string): Problem {
  const [, field, number, rule] = /^([a-zA-Z]+) (-?[\d.]+) (.+)$/s.exec(message) ?? [];
  const found = field === undefined ? undefined : valueAt(value, [field]);
  if (field === undefined || rule === undefined || String(found) !== number) {
    return { path, value, rule: message };
  }
  return { path: [...path, field], value: found, rule };
}

/** A section whose undefined entries are gone, as neighbours' options want it. */
export type Stated<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** A section without its undefined entries. */
export function stated<T extends object>(section: T): Stated<T> {
  const copy = { ...section };
  dropUndefined(copy);
  return copy;
}

function dropUndefined<T extends object>(section: T): asserts section is T & Stated<T> {
  for (const key of Object.keys(section)) {
    if (Reflect.get(section, key) === undefined) Reflect.deleteProperty(section, key);
  }
}
