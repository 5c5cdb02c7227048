/** What ranks call, and how a call is told to the other ranks: the part of it that must agree. */
import { type ElementType, elementTypes } from "./element-type.ts";

/** Operations of a communicator; the index of a name stands for it in the arena. */
export const operations = [
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "broadcast",
  "reduce",
  "scatter",
  "gather",
  "all-to-all",
  "all-gather-v",
  "reduce-scatter-v",
  "scatter-v",
  "gather-v",
  "all-to-all-v",
  "barrier",
  "send",
  "receive",
] as const;
export type Operation = (typeof operations)[number];

/** One call of one rank. */
export interface Call {
  readonly operation: Operation;
  readonly type: ElementType;
  /** Elements, as the caller counts them; -1 where ranks may differ (v-variants). */
  readonly count: number;
  /** Root of a rooted operation, peer of a send or receive (ranks of the group); -1 without. */
  readonly peer: number;
}

export const callWords = 5;

/** Writes a call into `callWords` words. */
export function storeCall(words: Int32Array, at: number, call: Call): void {
  words[at] = operations.indexOf(call.operation);
  words[at + 1] = elementTypes.indexOf(call.type);
  words[at + 2] = call.count | 0;
  words[at + 3] = Math.floor(call.count / 2 ** 32);
  words[at + 4] = call.peer;
}

export function loadCall(words: Int32Array, at: number): Call {
  return {
    operation: operations[words[at]!]!,
    type: elementTypes[words[at + 1]!]!,
    count: words[at + 3]! * 2 ** 32 + (words[at + 2]! >>> 0),
    peer: words[at + 4]!,
  };
}

export function sameCall(a: Call, b: Call): boolean {
  return (
    a.operation === b.operation && a.type === b.type && a.count === b.count && a.peer === b.peer
  );
}

/** A call for people: `all-reduce of 1025 f32`, `broadcast from 2 of 8 i32`. */
export function printCall(call: Call): string {
  const { operation, type, count, peer } = call;
  if (operation === "barrier") return operation;
  const towards = /^(send|reduce|gather)/.test(operation) ? "to" : "from";
  const where = peer < 0 ? "" : ` ${towards} ${peer}`;
  return `${operation}${where} of ${count < 0 ? "varying counts" : count} ${type}`;
}
