/** What Zod finds, told as problems: the rule in words, and the nearest legal value or known key. */
import { nearestName } from "@trireme/core";
import type { core } from "zod";
import { type Path, type Problem, valueAt } from "./problem.ts";
import { type JsonSchema, jsonSchema } from "./schema.ts";

type Issue = core.$ZodIssue;

/** The problems behind the issues of one failed parse of `root`. */
export function problemsOf(root: unknown, issues: readonly Issue[], prefix: Path = []): Problem[] {
  return issues.flatMap((issue) =>
    problemsOfIssue(root, issue, [...prefix, ...keysOf(issue.path)]),
  );
}

function keysOf(path: readonly PropertyKey[]): Path {
  return path.map((key) => (typeof key === "number" ? key : String(key)));
}

function problemsOfIssue(root: unknown, issue: Issue, path: Path): Problem[] {
  const value = valueAt(root, path);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownKey(path, key));
    case "invalid_union":
      return problemsOfUnion(root, issue, path, value);
    case "invalid_type":
      return [wrongType(path, value, issue.expected)];
    case "too_small":
      return [
        outOfRange(
          path,
          value,
          issue.inclusive === false ? "above" : "at least",
          issue.minimum,
          issue.inclusive,
        ),
      ];
    case "too_big":
      return [
        outOfRange(
          path,
          value,
          issue.inclusive === false ? "below" : "at most",
          issue.maximum,
          issue.inclusive,
        ),
      ];
    case "invalid_value":
      return [wrongChoice(path, value, issue.values)];
    case "custom": {
      const suggestion: unknown = issue.params?.["suggestion"];
      const problem = { path, value, rule: issue.message };
      return [typeof suggestion === "string" ? { ...problem, suggestion } : problem];
    }
    case "invalid_format":
    case "not_multiple_of":
    case "invalid_key":
    case "invalid_element":
      break;
  }
  // No rule of this schema comes here; Zod's own words would still be right.
  return [{ path, value, rule: issue.message }];
}

function unknownKey(parent: Path, key: string): Problem {
  const path = [...parent, key];
  const known = knownKeys(parent);
  const near = nearestName(key, known);
  return {
    path,
    value: undefined,
    rule: "unknown key",
    suggestion: near === undefined ? `known: ${known.join(", ")}` : `did you mean ${near}?`,
  };
}

/** The keys an object may have at a path, read off the exported schema. */
function knownKeys(path: Path): readonly string[] {
  return schemasAt(path).flatMap((node) => Object.keys(node.properties ?? {}));
}

/** What a missing key would be: its description, or else its kind. */
function meaning(path: Path, kind: string): string {
  const described = schemasAt(path).find((node) => node.description !== undefined);
  return described?.description ?? kind;
}

/** The schema of the values at a path; several where the schema leaves a choice. */
function schemasAt(path: Path): readonly JsonSchema[] {
  let nodes = branches(jsonSchema());
  for (const key of path) {
    const children = nodes.map((node) => node.properties?.[key]);
    nodes = children.filter((child) => child !== undefined).flatMap(branches);
  }
  return nodes;
}

function branches(node: JsonSchema): readonly JsonSchema[] {
  return node.anyOf === undefined ? [node] : [node, ...node.anyOf.flatMap(branches)];
}

/** Of a union, tells about the branch whose kind the value has; else lists the kinds. */
function problemsOfUnion(
  root: unknown,
  issue: core.$ZodIssueInvalidUnion,
  path: Path,
  value: unknown,
): Problem[] {
  const fits = issue.errors.find((errors) => !errors.some((e) => e.path.length === 0 && isKind(e)));
  if (fits !== undefined) return problemsOf(root, fits, path);
  const literals = issue.errors.flat().flatMap((e) => (e.code === "invalid_value" ? e.values : []));
  const kinds = issue.errors
    .flat()
    .flatMap((e) => (e.code === "invalid_type" ? [article(e.expected)] : []));
  const choices = [...literals.map((v) => JSON.stringify(v)), ...kinds];
  const any = choices.join(" or ");
  return [
    {
      path,
      value,
      rule: value === undefined ? `required: ${meaning(path, any)}` : `must be ${any}`,
    },
  ];
}

/** True of an issue that says the value is of another kind altogether. */
function isKind(issue: Issue): boolean {
  return issue.code === "invalid_type" || issue.code === "invalid_value";
}

function article(type: string): string {
  switch (type) {
    case "int":
      return "an integer";
    case "object":
      return "a group of keys";
    case "string":
      return "text";
    case "boolean":
      return "true or false";
    default:
      return `a ${type}`;
  }
}

function wrongType(path: Path, value: unknown, expected: string): Problem {
  if (value === undefined)
    return { path, value, rule: `required: ${meaning(path, article(expected))}` };
  const problem = { path, value, rule: `must be ${article(expected)}` };
  if (expected === "int" && typeof value === "number" && Number.isFinite(value)) {
    return { ...problem, suggestion: `nearest: ${Math.floor(value)} or ${Math.ceil(value)}` };
  }
  const numeric = expected === "int" || expected === "number";
  if (
    numeric &&
    typeof value === "string" &&
    value.trim() !== "" &&
    Number.isFinite(Number(value))
  ) {
    return { ...problem, suggestion: `write ${value.trim()} without quotes` };
  }
  return problem;
}

function outOfRange(
  path: Path,
  value: unknown,
  relation: string,
  limit: number | bigint,
  inclusive: boolean | undefined,
): Problem {
  if (typeof value === "string") return { path, value, rule: "must not be empty" };
  const problem = { path, value, rule: `must be ${relation} ${limit}` };
  return inclusive === false ? problem : { ...problem, suggestion: `nearest: ${limit}` };
}

function wrongChoice(path: Path, value: unknown, values: readonly unknown[]): Problem {
  const names = values.map(String);
  const one = names.length === 1 ? `must be ${names[0]}` : `must be one of ${names.join(", ")}`;
  const problem = { path, value, rule: value === undefined ? `required: ${one}` : one };
  const near = typeof value === "string" ? nearestName(value, names) : nearestNumber(value, values);
  return near === undefined ? problem : { ...problem, suggestion: `did you mean ${near}?` };
}

function nearestNumber(value: unknown, values: readonly unknown[]): string | undefined {
  if (typeof value !== "number" || Number.isNaN(value)) return undefined;
  const numbers = values.filter((v) => typeof v === "number");
  numbers.sort((a, b) => Math.abs(a - value) - Math.abs(b - value));
  return numbers[0] === undefined ? undefined : String(numbers[0]);
}
