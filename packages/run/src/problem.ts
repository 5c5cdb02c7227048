/**
 * What is wrong with a run description, as data. A problem names the place, the value that stands
 * there, the rule it breaks and the nearest thing that would be legal; one check returns all of
 * them, in the order of the file.
 */
import { TriremeError } from "@trireme/core";

/** Keys and list positions from the root of the description to a value. */
export type Path = readonly (string | number)[];

/** One broken rule. */
export interface Problem {
  /** Where: empty for the description as a whole. */
  readonly path: Path;
  /** What stands there; undefined when the problem is the key, missing or unknown. */
  readonly value: unknown;
  /** The rule, e.g. `must be at least 1`. */
  readonly rule: string;
  /** The nearest legal value or known key, or what to do, e.g. `nearest: 1`. */
  readonly suggestion?: string;
  /** Where in a file, `run.yaml:3:7`, when it comes from one. */
  readonly at?: string;
}

/** A run description that breaks rules; `problems` has them all, the message has one a line. */
export class RunError extends TriremeError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super("RUN", problems.map(formatProblem).join("\n"), options);
    this.name = "RunError";
    this.problems = problems;
  }
}

/** A path as people write it: `plan.tp`, `stages[2].layers`; `run` for the whole description. */
export function formatPath(path: Path): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else text += text === "" ? key : `.${key}`;
  }
  return text === "" ? "run" : text;
}

/** One line: `run.yaml:3:7: plan.tp = 0: must be at least 1; nearest: 1`. */
export function formatProblem(problem: Problem): string {
  const { at, path, rule, suggestion } = problem;
  const value = brief(problem.value);
  const place = value === "" ? formatPath(path) : `${formatPath(path)} = ${value}`;
  // Of a syntax error the position says all.
  const parts = at === undefined ? [place] : path.length === 0 && value === "" ? [at] : [at, place];
  return `${[...parts, rule].join(": ")}${suggestion === undefined ? "" : `; ${suggestion}`}`;
}

/** A scalar as it would be written in the file; nothing for what does not fit in a line. */
function brief(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") return "";
  const oneLine = value.length > 60 ? `${value.slice(0, 57)}...` : value;
  return JSON.stringify(oneLine);
}

/** A group of keys: an object or a list. */
export function isGroup(value: unknown): value is Readonly<Record<string | number, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The value at a path of plain data; undefined where the path leads nowhere. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) {
    if (!isGroup(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** Sorts problems by where their place stands in the description; a missing key counts as its parent. */
export function inFileOrder(root: unknown, problems: readonly Problem[]): readonly Problem[] {
  const places = problems.map((problem) => ({ problem, place: placeOf(root, problem.path) }));
  places.sort((a, b) => comparePlaces(a.place, b.place));
  return places.map((entry) => entry.problem);
}

/** For each step of a path, the position of its key among its neighbours. */
function placeOf(root: unknown, path: Path): number[] {
  const place: number[] = [];
  let value = root;
  for (const key of path) {
    if (!isGroup(value)) break;
    const position = Object.keys(value).indexOf(String(key));
    if (position === -1) break;
    place.push(position);
    value = value[key];
  }
  return place;
}

function comparePlaces(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = a[i]! - b[i]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
