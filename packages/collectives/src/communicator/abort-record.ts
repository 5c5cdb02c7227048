/**
 * The one error all ranks raise. The first rank to fail writes it into the header of the arena and
 * rings every doorbell; every later wait and call on any rank throws it.
 */
import { TriremeError } from "@trireme/core";
import { type ArenaLayout, rankWord } from "./arena.ts";

/** What went wrong, in the order of the words that stand for it. */
const codes = ["ABORTED", "MISMATCH", "DEADLINE", "CLOSED"] as const;
export type AbortCode = (typeof codes)[number];

/** Header words: state, code, length of the text. */
const state = 8;
const code = 9;
const length = 11;
/** What the state says: nothing, that all is written, or, below 0, -1 - r: that rank r is writing. */
const none = 0;
const written = 1;
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
  if (Atomics.compareExchange(words, state, none, -1 - rank) === none) {
    const text = new Uint16Array(words.buffer, textOffset, textUnits);
    const units = Math.min(message.length, textUnits);
    for (let i = 0; i < units; i++) text[i] = message.charCodeAt(i);
    words[code] = codes.indexOf(kind);
    words[length] = units;
    Atomics.store(words, state, written);
  }
  for (let peer = 0; peer < layout.ranks; peer++) {
    const bell = rankWord(layout, peer);
    Atomics.add(words, bell, 1);
    Atomics.notify(words, bell);
  }
}

/** The recorded failure as an error to throw on this rank; undefined while there is none. */
export function recordedAbort(words: Int32Array): TriremeError | undefined {
  if (Atomics.load(words, state) !== written) return undefined;
  const text = new Uint16Array(words.buffer, textOffset, textUnits);
  let message = "";
  for (let i = 0; i < words[length]!; i++) message += String.fromCharCode(text[i]!);
  return new TriremeError(codes[words[code]!]!, message);
}

/** The rank that has begun to record a failure and not ended; undefined when none is about it. */
export function recordingRank(words: Int32Array): number | undefined {
  const now = Atomics.load(words, state);
  return now < 0 ? -1 - now : undefined;
}
