/** What the header of a slot says of its packet: which message it is a part of, and whose call that is. */
import type { Bytes } from "@trireme/core";
import { elementTypes } from "./element-type.ts";
import { type Call, operations } from "./operation.ts";

/** What tells the packets of one message from all others between the same two ranks. */
export interface PacketKey {
  readonly group: number;
  readonly phase: number;
  readonly sequence: number;
}

/** Words of a slot's header. */
const packetWords = {
  bytes: 0,
  group: 1,
  phase: 2,
  sequence: 3,
  operation: 4,
  type: 5,
  countLow: 6,
  countHigh: 7,
} as const;

/** Heads the slot at this byte offset; `call.count` is that of the whole message. */
export function writeHeader(
  words: Int32Array,
  slot: number,
  length: Bytes,
  { group, phase, sequence }: PacketKey,
  { operation, type, count }: Pick<Call, "operation" | "type" | "count">,
): void {
  const at = slot / 4;
  words[at + packetWords.bytes] = length;
  words[at + packetWords.group] = group;
  words[at + packetWords.phase] = phase;
  words[at + packetWords.sequence] = sequence;
  words[at + packetWords.operation] = operations.indexOf(operation);
  words[at + packetWords.type] = elementTypes.indexOf(type);
  words[at + packetWords.countLow] = count | 0;
  words[at + packetWords.countHigh] = Math.floor(count / 2 ** 32);
}

/** Bytes of the packet's payload. */
export function lengthOf(words: Int32Array, slot: number): Bytes {
  return words[slot / 4 + packetWords.bytes]!;
}

export function keyOf(words: Int32Array, slot: number): PacketKey {
  const at = slot / 4;
  return {
    group: words[at + packetWords.group]!,
    phase: words[at + packetWords.phase]!,
    sequence: words[at + packetWords.sequence]!,
  };
}

/** Whether the packet is part of this message. */
export function isPartOf(words: Int32Array, slot: number, key: PacketKey): boolean {
  const at = slot / 4;
  return (
    words[at + packetWords.sequence] === key.sequence &&
    words[at + packetWords.group] === key.group &&
    words[at + packetWords.phase] === key.phase
  );
}

/** The call of the rank that sent the packet, whose peer no packet tells. */
export function callOf(words: Int32Array, slot: number): Call {
  const at = slot / 4;
  return {
    operation: operations[words[at + packetWords.operation]!]!,
    type: elementTypes[words[at + packetWords.type]!]!,
    count: words[at + packetWords.countHigh]! * 2 ** 32 + (words[at + packetWords.countLow]! >>> 0),
    peer: -1,
  };
}
