/**
 * Messages between two ranks that fit one slot, while nothing else of the rank is under way: sent, or
 * taken if they are there, on the spot, with no task to be made, moved and looked after. Whoever has
 * just computed comes to its messages with cold caches, and they take as long as what they touch.
 */
import { slotHeaderBytes } from "./arena.ts";
import { type Elements, bytesOf } from "./element-type.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Call } from "./operation.ts";
import { type PacketKey, callOf, lengthOf, writeHeader } from "./packet-header.ts";

/** A send or receive; `peer` is a rank of the arena. */
export interface ShortMessage {
  readonly peer: number;
  readonly key: PacketKey;
  readonly call: Call;
  readonly data: Elements;
}

/** Sends the message if that can be done at once; whether it was. */
export function sendAtOnce(endpoint: Endpoint, { peer, key, call, data }: ShortMessage): boolean {
  if (!endpoint.isIdle || data.byteLength > endpoint.layout.slotBytes) return false;
  endpoint.check();
  const slot = endpoint.room(peer);
  if (slot < 0) return false;
  const flight = endpoint.flights.start(key.group, key.sequence, call, endpoint.now());
  endpoint.copy(endpoint.bytes, slot + slotHeaderBytes, bytesOf(data));
  writeHeader(endpoint.words, slot, data.byteLength, key, call);
  endpoint.publish(peer);
  endpoint.flights.end(flight, endpoint.now());
  return true;
}

/** Takes the message if all of it is there, and is what the call says; whether it was. */
export function takeAtOnce(endpoint: Endpoint, { peer, key, call, data }: ShortMessage): boolean {
  if (!endpoint.isIdle) return false;
  endpoint.check();
  if (!endpoint.has(peer, key)) return false;
  const slot = endpoint.open(peer, key);
  const length = data.byteLength;
  if (lengthOf(endpoint.words, slot) !== length) return false;
  const theirs = callOf(endpoint.words, slot);
  // What does not match is left for a task, which fails with the reason.
  if (theirs.operation !== "send" || theirs.type !== call.type || theirs.count !== call.count) {
    return false;
  }
  const flight = endpoint.flights.start(key.group, key.sequence, call, endpoint.now());
  const payload = new Uint8Array(endpoint.bytes.buffer, slot + slotHeaderBytes, length);
  endpoint.copy(bytesOf(data), 0, payload);
  endpoint.release(peer, key);
  endpoint.settle();
  endpoint.flights.end(flight, endpoint.now());
  return true;
}
