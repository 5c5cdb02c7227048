/**
 * The one error all ranks raise. The first rank to fail writes it into the header of the arena and
 * rings every doorbell; every later wait and call on any rank throws it.
 */
import { TriremeError } from "@trireme/core";
import { type ArenaLayout, rankWord } from "./arena.ts";

/** What went wrong, in the order of the words that stand for it. */
const codes = ["ABORTED", "MISMATCH", "DEADLINE", "CLOSED"] as const;
export type AbortCode = (typeof codes)[number];

/** Header words: state (0 none, 1 being written, 2 written), code, rank, length of the text. */
const state = 8;
const code = 9;
const origin = 10;
const length = 11;
const textOffset = 256;
const textUnits = 1024;

/** Records the failure unless another rank was first, and wakes everyone. */
export function recordAbort(
  words: Int32Array,
  layout: ArenaLayout,
  kind: AbortCode,
  rank: number,
  message: string,
): void {
  if (Atomics.compareExchange(words, state, 0, 1) === 0) {
    const text = new Uint16Array(words.buffer, textOffset, textUnits);
    const units = Math.min(message.length, textUnits);
    for (let i = 0; i < units; i++) text[i] = message.charCodeAt(i);
    words[code] = codes.indexOf(kind);
    words[origin] = rank;
    words[length] = units;
    Atomics.store(words, state, 2);
  }
  for (let peer = 0; peer < layout.ranks; peer++) {
    const bell = rankWord(layout, peer);
    Atomics.add(words, bell, 1);
    Atomics.notify(words, bell);
  }
}

/** The recorded failure as an error to throw on this rank; undefined while there is none. */
export function recordedAbort(words: Int32Array): TriremeError | undefined {
  if (Atomics.load(words, state) !== 2) return undefined;
  const text = new Uint16Array(words.buffer, textOffset, textUnits);
  let message = "";
  for (let i = 0; i < words[length]!; i++) message += String.fromCharCode(text[i]!);
  return new TriremeError(codes[words[code]!]!, message);
}
