/**
 * A user's own measurements as text: CSV with a header, or JSON lines. A line names an operator by `key`
 * ("gemm/bf16/forward/1x4096x4096x1024", see `Operator.key`) or by `kind`, `form`, `pass` and `shape`, and has
 * its `seconds`; `flops` and `bytes` may be left out for products and flash attention.
 */
import { TriremeError, nearestName } from "@trireme/core";
import { type Measurement, measuredOperator } from "./measurement.ts";

const names = ["key", "kind", "form", "pass", "shape", "flops", "bytes", "seconds"] as const;
type Name = (typeof names)[number];
type Line = Partial<Record<Name, string>>;

/**
 * Parses measurements; lines that are empty or start with # are skipped.
 * Throws TriremeError "MEASUREMENTS" with file, line and reason for the first line that is wrong.
 */
export function parseMeasurements(text: string, file = "measurements"): Measurement[] {
  const lines = text
    .split(/\r?\n/)
    .map((content, i) => ({ content: content.trim(), number: i + 1 }))
    .filter(({ content }) => content !== "" && !content.startsWith("#"));
  const [first] = lines;
  if (first === undefined) throw new TriremeError("MEASUREMENTS", `${file}: no measurements`);
  const parse = first.content.startsWith("{") ? jsonLine : csvLine(at(file, first, header));
  return lines
    .slice(first.content.startsWith("{") ? 0 : 1)
    .map((line) => at(file, line, (content) => measurement(parse(content))));
}

interface Numbered {
  readonly content: string;
  readonly number: number;
}

/** Puts file and line before what is wrong with a line. */
function at<T>(file: string, line: Numbered, read: (content: string) => T): T {
  try {
    return read(line.content);
  } catch (cause) {
    if (!(cause instanceof TriremeError)) throw cause;
    throw new TriremeError("MEASUREMENTS", `${file}:${line.number}: ${cause.message}`, { cause });
  }
}

function measurement(line: Line): Measurement {
  const { key } = line;
  const parts = key?.split("/");
  if (parts !== undefined && parts.length !== 4) {
    fail(`key "${key}" must be kind/form/pass/shape`);
  }
  const part = (name: "kind" | "form" | "pass" | "shape", i: number): string => {
    const text = parts?.[i] ?? line[name];
    return text ?? fail(`neither key nor ${name} is given`);
  };
  const seconds = amount(line, "seconds");
  if (seconds === undefined || seconds === 0) fail(`seconds ${line.seconds ?? ""} must be above 0`);
  const [flops, bytes] = [amount(line, "flops"), amount(line, "bytes")];
  return {
    operator: measuredOperator({
      kind: part("kind", 0),
      form: part("form", 1),
      pass: part("pass", 2),
      shape: part("shape", 3),
      ...(flops === undefined ? {} : { flops }),
      ...(bytes === undefined ? {} : { bytes }),
    }),
    seconds,
  };
}

function amount(line: Line, name: "flops" | "bytes" | "seconds"): number | undefined {
  const text = line[name];
  if (text === undefined || text === "") return undefined;
  const value = Number(text);
  if (!(value >= 0 && value < Infinity)) fail(`${name} "${text}" is no positive number`);
  return value;
}

function header(content: string): readonly Name[] {
  const columns = content.split(",").map((c) => c.trim());
  const known = columns.map(named);
  if (!known.includes("seconds")) fail(`the header ${content} has no column seconds`);
  return known;
}

function csvLine(columns: readonly Name[]): (content: string) => Line {
  return (content) => {
    const cells = content.split(",").map((c) => c.trim());
    if (cells.length !== columns.length) {
      fail(`${cells.length} cells where the header has ${columns.length}`);
    }
    return Object.fromEntries(columns.map((c, i) => [c, cells[i]!]));
  };
}

function jsonLine(content: string): Line {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (cause) {
    throw new TriremeError("MEASUREMENTS", "not JSON", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail("not an object");
  const line: Line = {};
  for (const [name, each] of Object.entries(value)) {
    line[named(name)] = Array.isArray(each) ? each.join("x") : String(each);
  }
  return line;
}

function named(text: string): Name {
  const name = names.find((n) => n === text);
  if (name !== undefined) return name;
  const near = nearestName(text, names);
  return fail(
    `unknown field "${text}"; ${near === undefined ? `known: ${names.join(", ")}` : `did you mean ${near}?`}`,
  );
}

function fail(message: string): never {
  throw new TriremeError("MEASUREMENTS", message);
}
