/**
 * Which process holds the loaders of which sources. Sources that share a process share its heap and its
 * libraries, which is where disaggregation saves memory; as loaders come and go they are dealt again,
 * and as few as can be move, since one that moves reads its state anew.
 */
import { type Bytes, Heap, TriremeError } from "@trireme/core";

/** What is dealt. */
export interface PartitionOptions {
  /** Loaders wanted of each source. */
  readonly loaders: ArrayLike<number>;
  /** Work of one loader of each source, in loaders' worth of a processor. Default 1 each. */
  readonly loads?: ArrayLike<number>;
  /** Memory of one loader of each source. Default 0. */
  readonly bytes?: ArrayLike<number>;
  readonly processes: number;
  /** Memory for loaders in each process. Default no limit. */
  readonly bytesPerProcess?: Bytes;
  /** Where they are now. */
  readonly before?: SourcePartition;
  /** A process may have this much more work than the mean before loaders move. Default 0.1. */
  readonly tolerance?: number;
}

/** Loaders dealt to processes. */
export interface SourcePartition {
  /** For each source, the process of each of its loaders, ascending; a process comes once per loader. */
  readonly processesOf: readonly (readonly number[])[];
  /** Work of each process. */
  readonly loads: Float64Array;
  /** Loaders that have to be started where there was none of their source before. */
  readonly started: number;
}

interface Placed {
  readonly source: number;
  /** It stood there before: to move it is to start it anew. */
  readonly kept: boolean;
  process: number;
}

/**
 * Keeps loaders where they are, drops those no longer wanted from the busiest processes, places new ones
 * largest first on the least busy, then moves single loaders off processes that have too much as long as
 * that evens out, new ones before those that would have to start anew. Loaders of one source prefer different processes.
 * @throws TriremeError "PARTITION" where memory does not hold them.
 */
export function partitionSources(options: PartitionOptions): SourcePartition {
  const { processes, bytesPerProcess = Infinity, before, tolerance = 0.1 } = options;
  if (!Number.isInteger(processes) || processes < 1)
    throw new TriremeError("PARTITION", `${processes} processes; use a positive integer`);
  const counts = Array.from(options.loaders, (count, source) => {
    if (!Number.isInteger(count) || count < 0)
      throw new TriremeError("PARTITION", `source ${source} has ${count} loaders; use a count`);
    return count;
  });
  if (!(tolerance >= 0) || !(bytesPerProcess >= 0)) {
    throw new TriremeError(
      "PARTITION",
      `tolerance ${tolerance}, ${bytesPerProcess} bytes a process; use numbers of at least 0`,
    );
  }
  const amount = (name: string, list: ArrayLike<number> | undefined, usual: number): number[] =>
    counts.map((_, source) => {
      const value = list?.[source] ?? usual;
      if (value >= 0 && value < Infinity) return value;
      throw new TriremeError(
        "PARTITION",
        `source ${source} has ${name} ${value}; use a finite number of at least 0`,
      );
    });
  const loadOf = amount("loads", options.loads, 1);
  const bytesOf = amount("bytes", options.bytes, 0);
  const load = (source: number): number => loadOf[source]!;
  const bytes = (source: number): number => bytesOf[source]!;
  const loads = new Float64Array(processes);
  const memory = new Float64Array(processes);
  // Loaders of each source in each process, where there are any.
  const standing = new Map<number, number>();
  const keyOf = (source: number, process: number): number => source * processes + process;
  const here = (source: number, process: number): number =>
    standing.get(keyOf(source, process)) ?? 0;
  const put = ({ source, process }: Placed, sign: 1 | -1): void => {
    loads[process]! += sign * load(source);
    memory[process]! += sign * bytes(source);
    standing.set(keyOf(source, process), here(source, process) + sign);
  };
  const placed: Placed[] = [];
  const have = new Int32Array(counts.length);
  counts.forEach((count, source) => {
    const kept = (before?.processesOf[source] ?? []).filter((process) => process < processes);
    // From the busiest as they stood.
    kept.sort((a, b) => (before?.loads[a] ?? 0) - (before?.loads[b] ?? 0) || a - b);
    let left = count;
    for (const process of kept) {
      // Memory may be less than it was, or loaders larger: what no longer fits moves.
      if (left === 0 || memory[process]! + bytes(source) > bytesPerProcess) continue;
      const loader = { source, kept: true, process };
      placed.push(loader);
      put(loader, 1);
      left--;
    }
    have[source] = count - left;
  });

  const missing = new Heap<number>((a, b) => load(a) > load(b) || (load(a) === load(b) && a < b));
  counts.forEach((count, source) => {
    for (let k = have[source]!; k < count; k++) missing.push(source);
  });
  for (let source = missing.pop(); source !== undefined; source = missing.pop()) {
    let best = -1;
    for (let process = 0; process < processes; process++) {
      if (memory[process]! + bytes(source) > bytesPerProcess) continue;
      const isBetter =
        best < 0 ||
        (here(source, process) - here(source, best) || loads[process]! - loads[best]!) < 0;
      if (isBetter) best = process;
    }
    if (best < 0) {
      throw new TriremeError(
        "PARTITION",
        `a loader of source ${source} needs ${bytes(source)} bytes, and none of ${processes} processes of ${bytesPerProcess} has room; use ${processes + 1}`,
      );
    }
    const loader = { source, kept: false, process: best };
    placed.push(loader);
    put(loader, 1);
  }

  const limit = (1 + tolerance) * (loads.reduce((a, b) => a + b, 0) / processes);
  const movable = [...placed].sort(
    (a, b) => Number(a.kept) - Number(b.kept) || load(a.source) - load(b.source),
  );
  for (const loader of movable) {
    const to = loads.indexOf(loads.reduce((a, b) => Math.min(a, b)));
    const gain = loads[loader.process]! - (loads[to]! + load(loader.source));
    const fits = memory[to]! + bytes(loader.source) <= bytesPerProcess;
    if (loads[loader.process]! <= limit || gain <= 0 || !fits) continue;
    put(loader, -1);
    loader.process = to;
    put(loader, 1);
  }
  const processesOf = counts.map((): number[] => []);
  for (const { source, process } of placed) processesOf[source]!.push(process);
  for (const list of processesOf) list.sort((a, b) => a - b);
  return { processesOf, loads, started: startedSince(processesOf, before) };
}

function startedSince(now: SourcePartition["processesOf"], before?: SourcePartition): number {
  let started = 0;
  now.forEach((processes, source) => {
    const had = [...(before?.processesOf[source] ?? [])];
    for (const process of processes) {
      const at = had.indexOf(process);
      if (at === -1) started++;
      else had.splice(at, 1);
    }
  });
  return started;
}
