/**
 * Where the samples of a step came from and what became of them: OVERLORD's DGraph (arXiv:2504.09844),
 * metadata only. A graph is a row of states, each a list of items with their parents in the state
 * before; there is one graph per modality, as an image goes another way than the text around it.
 */
import { TriremeError } from "@trireme/core";

/** One state of the items of a step, as columns. */
export interface DataState {
  /** What the items are: "sample", "part", "microbatch", "delivery", … */
  readonly name: string;
  /** Where each item's parents end in `parents`, exclusive; [] in the first state. */
  readonly parentEnds: Int32Array;
  /** Items of the state before. */
  readonly parents: Int32Array;
  /** Items of the state. */
  readonly count: number;
}

/** The states of one modality, first to last. */
export interface DataGraph {
  readonly modality: string;
  readonly states: readonly DataState[];
}

/** A graph with its first state, of `count` items without parents. */
export function dataGraph(modality: string, name: string, count: number): DataGraph {
  const none = new Int32Array(0);
  return { modality, states: [{ name, parentEnds: none, parents: none, count }] };
}

/** The graph with a further state, one item per list of parents in the last. */
export function extendGraph(
  graph: DataGraph,
  name: string,
  parentsOf: readonly (readonly number[])[],
): DataGraph {
  const last = graph.states.at(-1)!;
  const parents = Int32Array.from(parentsOf.flat());
  const strange = parents.find((item) => item < 0 || item >= last.count);
  if (strange !== undefined) {
    throw new TriremeError(
      "DATA_GRAPH",
      `a parent ${strange} of a ${name}: the ${graph.modality} graph has ${last.count} of ${last.name}`,
    );
  }
  let end = 0;
  const parentEnds = Int32Array.from(parentsOf, (list) => (end += list.length));
  const state = { name, parentEnds, parents, count: parentsOf.length };
  return { modality: graph.modality, states: [...graph.states, state] };
}

/** The items of state `to` that an item of state `from` was made of, ascending; `to` comes first. */
export function ancestorsOf(
  graph: DataGraph,
  from: string,
  item: number,
  to: string = graph.states[0]!.name,
): readonly number[] {
  const last = indexOf(graph, from);
  const first = indexOf(graph, to);
  check(graph, last, item);
  if (first > last)
    throw new TriremeError("DATA_GRAPH", `${to} comes after ${from}; ask descendantsOf`);
  let items = new Set([item]);
  for (let k = last; k > first; k--) {
    const { parents, parentEnds } = graph.states[k]!;
    const up = new Set<number>();
    for (const i of items) {
      for (let p = i === 0 ? 0 : parentEnds[i - 1]!; p < parentEnds[i]!; p++) up.add(parents[p]!);
    }
    items = up;
  }
  return [...items].sort((a, b) => a - b);
}

/** The items of state `to` that an item of state `from` went into, ascending; `from` comes first. */
export function descendantsOf(
  graph: DataGraph,
  from: string,
  item: number,
  to: string = graph.states.at(-1)!.name,
): readonly number[] {
  const first = indexOf(graph, from);
  const last = indexOf(graph, to);
  check(graph, first, item);
  if (first > last)
    throw new TriremeError("DATA_GRAPH", `${to} comes before ${from}; ask ancestorsOf`);
  let items = new Set([item]);
  for (let k = first + 1; k <= last; k++) {
    const { parents, parentEnds, count } = graph.states[k]!;
    const down = new Set<number>();
    for (let i = 0, p = 0; i < count; i++) {
      for (; p < parentEnds[i]!; p++) if (items.has(parents[p]!)) down.add(i);
    }
    items = down;
  }
  return [...items].sort((a, b) => a - b);
}

function indexOf(graph: DataGraph, name: string): number {
  const index = graph.states.findIndex((state) => state.name === name);
  if (index === -1) {
    const names = graph.states.map((state) => state.name).join(", ");
    throw new TriremeError(
      "DATA_GRAPH",
      `the ${graph.modality} graph has no state "${name}"; it has ${names}`,
    );
  }
  return index;
}

function check(graph: DataGraph, state: number, item: number): void {
  const { name, count } = graph.states[state]!;
  if (!Number.isInteger(item) || item < 0 || item >= count)
    throw new TriremeError("DATA_GRAPH", `${name} ${item} is outside 0..${count - 1}`);
}
