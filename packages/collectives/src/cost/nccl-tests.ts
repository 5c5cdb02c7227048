/**
 * What nccl-tests reports: algbw = S / t, busbw = algbw times a factor that makes it comparable with
 * the speed of a link (nccl-tests PERFORMANCE.md, and each operation's .cu file). S is the full
 * buffer: of an all-gather and a reduce-scatter the count of one rank times the ranks.
 */
import { type Bytes, type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";

/** Operations of nccl-tests, by our names; `hypercube` is its own all-gather by recursive doubling. */
export type TestedOperation =
  | "all-reduce"
  | "reduce-scatter"
  | "all-gather"
  | "all-to-all"
  | "gather"
  | "scatter"
  | "broadcast"
  | "reduce"
  | "send-receive"
  | "hypercube";

/** busbw over algbw. */
export function busFactor(operation: TestedOperation, ranks: number): number {
  switch (operation) {
    case "all-reduce":
      return (2 * (ranks - 1)) / ranks;
    case "reduce-scatter":
    case "all-gather":
    case "all-to-all":
    case "gather":
    case "scatter":
      return (ranks - 1) / ranks;
    case "broadcast":
    case "reduce":
    case "send-receive":
    case "hypercube":
      return 1;
  }
}

/** Algorithm bandwidth; 0 for an empty buffer. */
export function algorithmBandwidth(bytes: Bytes, time: Seconds): BytesPerSecond {
  return bytes === 0 ? 0 : bytes / time;
}

/** Bus bandwidth. */
export function busBandwidth(
  operation: TestedOperation,
  bytes: Bytes,
  time: Seconds,
  ranks: number,
): BytesPerSecond {
  return algorithmBandwidth(bytes, time) * busFactor(operation, ranks);
}

/** Bytes that nccl-tests really moves: parts of an all-to-all are multiples of 16 bytes. */
export function testedBytes(operation: TestedOperation, bytes: Bytes, ranks: number): Bytes {
  const parts = /gather|scatter|all-to-all|hypercube/.test(operation) ? ranks : 1;
  const unit = operation === "all-to-all" ? 16 : 4;
  return Math.floor(bytes / parts / unit) * unit * parts;
}

/** More sizes than anybody would run: a slip in the step, not a wish. */
const mostSizes = 1_000_000;

/**
 * Sizes from -b to -e by a factor (-f) or a step (-i), as nccl-tests takes them. Throws `SIZES` where
 * they never end, or come to more than a million.
 */
export function testedSizes(options: {
  readonly from: Bytes;
  readonly to: Bytes;
  readonly factor?: number;
  readonly step?: Bytes;
}): Bytes[] {
  const { from, to, factor = 1, step = 1_048_576 } = options;
  const ends = from >= 0 && to >= from && to < Infinity && (factor > 1 || step > 0);
  if (!ends || (factor > 1 && from === 0)) {
    throw new TriremeError(
      "SIZES",
      `sizes from ${from} to ${to} by factor ${factor} or step ${step} never end; use from <= to, which is finite, and a factor above 1 (from above 0) or a step above 0`,
    );
  }
  const sizes = [];
  for (let size = from; size <= to; size = factor > 1 ? size * factor : size + step) {
    if (sizes.push(size) <= mostSizes) continue;
    throw new TriremeError(
      "SIZES",
      `sizes from ${from} to ${to} by factor ${factor} or step ${step} are more than ${mostSizes}; use a larger one`,
    );
  }
  return sizes;
}

/** A line of the table; `inPlace` where that was run too. */
export interface TestedRow {
  readonly bytes: Bytes;
  readonly time: Seconds;
  readonly inPlace?: Seconds;
}

/** Options of `ncclTestsTable`. */
export interface TestsTableOptions {
  readonly operation: TestedOperation;
  readonly ranks: number;
  readonly rows: readonly TestedRow[];
  /** Root of a rooted operation; -1 without. */
  readonly root?: number;
}

const reducing: ReadonlySet<TestedOperation> = new Set(["all-reduce", "reduce-scatter", "reduce"]);

/** The table nccl-tests prints, with its average bus bandwidth. */
export function ncclTestsTable(options: TestsTableOptions): string {
  const { operation, ranks, rows, root = -1 } = options;
  const width = (text: string | number, n: number): string => String(text).padStart(n);
  const time = (t: Seconds): string => {
    const micro = t * 1e6;
    return micro >= 10_000 ? micro.toFixed(0) : micro >= 100 ? micro.toFixed(1) : micro.toFixed(2);
  };
  const gigabytes = (b: BytesPerSecond): string => (b / 1e9).toFixed(2);
  let sum = 0;
  let measured = 0;
  const measure = (bytes: Bytes, t: Seconds | undefined): string => {
    if (t === undefined)
      return width("N/A", 9) + width("N/A", 8) + width("N/A", 8) + width("N/A", 7);
    const bus = busBandwidth(operation, bytes, t, ranks);
    sum += bus;
    measured++;
    const algorithm = algorithmBandwidth(bytes, t);
    return (
      width(time(t), 9) + width(gigabytes(algorithm), 8) + width(gigabytes(bus), 8) + width(0, 7)
    );
  };
  const lines = rows.map((row) => {
    const bytes = testedBytes(operation, row.bytes, ranks);
    const per = /gather|scatter|all-to-all/.test(operation) ? ranks : 1;
    const head =
      width(bytes, 12) +
      width(bytes / 4 / per, 14) +
      width("float", 10) +
      width(reducing.has(operation) ? "sum" : "none", 8) +
      width(root, 8);
    return head + measure(bytes, row.time) + measure(bytes, row.inPlace);
  });
  const half = `${width("time", 9)}${width("algbw", 8)}${width("busbw", 8)}${width("#wrong", 7)}`;
  const units = `${width("(us)", 9)}${width("(GB/s)", 8)}${width("(GB/s)", 8)}${" ".repeat(7)}`;
  return [
    `#${" ".repeat(51)}${width("out-of-place", 22)}${width("in-place", 32)}`,
    `#${width("size", 11)}${width("count", 14)}${width("type", 10)}${width("redop", 8)}${width("root", 8)}${half}${half}`,
    `#${width("(B)", 11)}${width("(elements)", 14)}${" ".repeat(26)}${units}${units}`.trimEnd(),
    ...lines,
    `# Avg bus bandwidth    : ${(measured === 0 ? 0 : sum / measured / 1e9).toFixed(3)}`,
  ].join("\n");
}
