/**
 * What a benchmark file exports, as data. Packages may not import this harness, so the form is
 * structural: a file exports plain objects under the name `benchmarks`, and they are checked here.
 */
import type { Better } from "./figure.ts";

/** Something to be measured: timed by the harness, or a number it works out itself. */
export interface Subject {
  /** Timed; its result is ignored, a promise awaited. */
  readonly time?: () => unknown;
  /** Gives the figure, in the unit of the benchmark; undefined where it cannot be had here. */
  readonly measure?: () => number | undefined | Promise<number | undefined>;
}

/** Whom we compare with: measured in the same run, or a published number. */
export interface Peer extends Subject {
  /** The peer and its version. */
  readonly name: string;
  /** A published number, in the unit of the benchmark. */
  readonly value?: number;
  /** Where it was published. */
  readonly source?: string;
}

/** One benchmark. */
export interface Benchmark extends Subject {
  readonly id: string;
  readonly what: string;
  readonly unit: string;
  readonly better: Better;
  readonly target: number | null;
  /** Units of work in a call of `time`; the figure is then a rate. */
  readonly amount?: number;
  /** Which seconds count: of the process's CPU, or of the wall. Default "cpu". */
  readonly clock?: "cpu" | "wall";
  readonly repeats?: number;
  /** Which of the samples is the figure: "best" for `time`, "median" for `measure`. */
  readonly statistic?: "best" | "median";
  readonly before?: () => unknown;
  readonly after?: () => unknown;
  readonly peer?: Peer;
}

type Check = (value: unknown) => boolean;

const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isText: Check = (value) => typeof value === "string" && value !== "";
const isPositive: Check = (value) => typeof value === "number" && value > 0 && value < Infinity;
const isFunction: Check = (value) => typeof value === "function";
const isNumber: Check = (value) => typeof value === "number" && Number.isFinite(value);
const oneOf =
  (...values: string[]): Check =>
  (value) =>
    typeof value === "string" && values.includes(value);

const subject = { time: optional(isFunction), measure: optional(isFunction) };
const isPeer = form<Peer>({
  ...subject,
  name: isText,
  value: optional(isNumber),
  source: optional(isText),
});
const isBenchmark = form<Benchmark>({
  ...subject,
  id: (value) => typeof value === "string" && /^[a-z][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(value),
  what: isText,
  unit: isText,
  better: oneOf("lower", "higher"),
  target: (value) => value === null || isNumber(value),
  amount: optional(isPositive),
  clock: optional(oneOf("cpu", "wall")),
  repeats: optional((value) => Number.isInteger(value) && isPositive(value)),
  statistic: optional(oneOf("best", "median")),
  before: optional(isFunction),
  after: optional(isFunction),
  peer: optional(isRecord),
});

/** The benchmarks that a file exports; throws in one line what is not in the form. */
export function benchmarksOf(module: unknown, file: string): readonly Benchmark[] {
  const exported = isRecord(module) ? module["benchmarks"] : undefined;
  if (!Array.isArray(exported)) throw new Error(`${file}: exports no array named benchmarks`);
  const ids = new Set<string>();
  return exported.map((entry: unknown, i) => {
    const name = isRecord(entry) && isText(entry["id"]) ? String(entry["id"]) : `benchmarks[${i}]`;
    const complain = (reason: string): never => {
      throw new Error(`${file}: ${name}: ${reason}`);
    };
    if (!isBenchmark(entry, complain)) return complain("is no benchmark");
    if (ids.has(entry.id)) complain("the id comes twice");
    ids.add(entry.id);
    if ((entry.time === undefined) === (entry.measure === undefined)) {
      complain("give one of time and measure");
    }
    if (entry.amount !== undefined && entry.time === undefined)
      complain("amount goes with time only");
    if (entry.peer !== undefined) checkPeer(entry.peer, complain);
    return entry;
  });
}

function checkPeer(peer: Peer, complain: (reason: string) => never): void {
  isPeer(peer, (reason) => complain(`peer: ${reason}`));
  const given = [peer.time, peer.measure, peer.value].filter((way) => way !== undefined).length;
  if (given !== 1) complain("peer: give one of time, measure and value");
  if (peer.value !== undefined && peer.source === undefined) {
    complain("peer: a published value needs its source");
  }
}

/** A check of each field of T, and that there is no other; complains of the first that fails. */
function form<T>(
  checks: Readonly<Record<keyof T, Check>>,
): (value: unknown, complain: (reason: string) => never) => value is T {
  const byName: Readonly<Record<string, Check>> = checks;
  return (value, complain): value is T => {
    if (!isRecord(value)) return complain("is no object");
    for (const [field, check] of Object.entries(byName)) {
      if (!check(value[field])) {
        complain(`${field} is ${describe(value[field])}, not as the form has it`);
      }
    }
    const unknown = Object.keys(value).find((field) => !Object.hasOwn(byName, field));
    if (unknown !== undefined) complain(`${unknown} is no field of the form`);
    return true;
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function describe(value: unknown): string {
  return typeof value === "function" ? "a function" : (JSON.stringify(value) ?? "undefined");
}
