/**
 * Carries a plan out on a communicator: the proof by doing. Every rank follows its rows; what a step
 * sends is copied before what it receives is applied, as the plan's steps read before they write. A
 * switch lives on the rank `(node - ranks) mod ranks`. For tests and for studying algorithms: the
 * communicator's own operations are faster.
 */
import { TriremeError } from "@trireme/core";
import type { Communicator, Work } from "../communicator/communicator.ts";
import type { CollectivePlan } from "./plan.ts";

type Data = Float32Array | Int32Array;

/** Elements of one rank's buffer before and after, for `count` elements of the operation's full buffer. */
interface Layout {
  readonly start: (chunk: number) => number;
  readonly length: (chunk: number) => number;
}

/** Where the chunks of a full buffer of `total` elements lie; owners' segments are equal. */
function layoutOf(plan: CollectivePlan, total: number): Layout {
  const { chunks, ranks, operation, sizes } = plan;
  if (sizes !== undefined) {
    const starts = new Float64Array(chunks + 1);
    for (let c = 0; c < chunks; c++) starts[c + 1] = starts[c]! + sizes[c]!;
    return { start: (c) => starts[c]!, length: (c) => sizes[c]! };
  }
  const owners =
    operation === "all-to-all" ? ranks * ranks : /gather|scatter/.test(operation) ? ranks : 1;
  if (total % owners !== 0) {
    throw new TriremeError(
      "COUNT",
      `${operation}: ${total} elements are not a multiple of ${owners}`,
    );
  }
  const segment = total / owners;
  const per = chunks / owners;
  const start = (c: number): number =>
    Math.floor(c / per) * segment + Math.floor(((c % per) * segment) / per);
  return { start, length: (c) => start(c + 1) - start(c) };
}

/**
 * Executes the plan on all ranks of `communicator`; every rank calls it. Buffers: all-reduce,
 * broadcast and reduce take and give the full buffer; reduce-scatter takes it and gives this rank's
 * segment; all-gather the reverse; scatter and gather have the full buffer on the root; an all-to-all
 * takes what this rank sends and gives what it receives, both by rank. `full` is the number of
 * elements of the full buffer (of an all-to-all, of all ranks' together).
 */
export function execute(
  plan: CollectivePlan,
  communicator: Communicator,
  input: Data,
  output: Data,
  full: number,
): void {
  const { ranks, chunks, steps, starts, source, target, chunk, count, reduce } = plan;
  const { rank } = communicator;
  if (communicator.ranks !== ranks) {
    throw new TriremeError("RANKS", `plan of ${ranks} ranks on ${communicator.ranks} ranks`);
  }
  const layout = layoutOf(plan, full);
  const hostOf = (node: number): number => (node < ranks ? node : (node - ranks) % ranks);
  const held = new Map<number, Data>();
  const key = (node: number, c: number): number => node * chunks + c;
  load(plan, rank, input, layout, (c, data) => held.set(key(rank, c), data));
  for (let step = 0; step < steps; step++) {
    const works: Work[] = [];
    const arrivals: { row: number; data: Data }[] = [];
    for (let row = starts[step]!; row < starts[step + 1]!; row++) {
      const [from, to] = [hostOf(source[row]!), hostOf(target[row]!)];
      if (from !== rank && to !== rank) continue;
      const [first, k] = [chunk[row]!, count[row]!];
      const data = empty(
        input,
        layout.start(first + k - 1) + layout.length(first + k - 1) - layout.start(first),
      );
      if (from === rank) {
        for (let c = first; c < first + k; c++) {
          data.set(held.get(key(source[row]!, c))!, layout.start(c) - layout.start(first));
        }
        if (to !== rank) works.push(communicator.send(data, to));
      } else {
        works.push(communicator.receive(data, from));
      }
      if (to === rank) arrivals.push({ row, data });
    }
    for (const work of works) work.wait();
    for (const { row, data } of arrivals) {
      const first = chunk[row]!;
      for (let c = first; c < first + count[row]!; c++) {
        const at = layout.start(c) - layout.start(first);
        const part = data.slice(at, at + layout.length(c));
        const before = held.get(key(target[row]!, c));
        if (reduce[row] === 1 && before !== undefined) {
          for (let i = 0; i < part.length; i++) part[i]! += before[i]!;
        }
        held.set(key(target[row]!, c), part);
      }
    }
  }
  store(plan, rank, output, layout, (c) => held.get(key(rank, c)));
}

function empty(like: Data, length: number): Data {
  return like instanceof Float32Array ? new Float32Array(length) : new Int32Array(length);
}

/** Chunks a rank starts with. */
function load(
  plan: CollectivePlan,
  rank: number,
  input: Data,
  layout: Layout,
  put: (chunk: number, data: Data) => void,
): void {
  const { operation, ranks, chunks, root } = plan;
  const perOwner = chunks / ranks;
  const own = ["all-gather", "gather", "all-to-all"].includes(operation);
  if ((operation === "broadcast" || operation === "scatter") && rank !== root) return;
  const [first, end] = own ? [rank * perOwner, (rank + 1) * perOwner] : [0, chunks];
  const base = layout.start(first);
  for (let c = first; c < end; c++) {
    const at = layout.start(c) - base;
    put(c, input.slice(at, at + layout.length(c)));
  }
}

/** Chunks a rank ends with. */
function store(
  plan: CollectivePlan,
  rank: number,
  output: Data,
  layout: Layout,
  get: (chunk: number) => Data | undefined,
): void {
  const { operation, ranks, chunks, root } = plan;
  const perOwner = chunks / ranks;
  if ((operation === "reduce" || operation === "gather") && rank !== root) return;
  const wanted: number[] = [];
  if (operation === "all-to-all") {
    const block = perOwner / ranks;
    for (let i = 0; i < ranks; i++) {
      for (let b = 0; b < block; b++) wanted.push((i * ranks + rank) * block + b);
    }
  } else if (operation === "reduce-scatter" || operation === "scatter") {
    for (let c = rank * perOwner; c < (rank + 1) * perOwner; c++) wanted.push(c);
  } else {
    for (let c = 0; c < chunks; c++) wanted.push(c);
  }
  let at = 0;
  for (const c of wanted) {
    const data = get(c);
    if (data !== undefined) output.set(data, at);
    at += layout.length(c);
  }
}
