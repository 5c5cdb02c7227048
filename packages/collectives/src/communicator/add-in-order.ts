/** The sum of one piece of every member of a group, in the order of rank. */
import type { Bytes } from "@trireme/core";
import { add } from "./add-kernel.ts";
import { slotHeaderBytes } from "./arena.ts";
import { elementBytes } from "./element-type.ts";
import type { Endpoint } from "./endpoint.ts";
import type { PacketKey } from "./packet-header.ts";
import type { Sum } from "./parts.ts";

/** A rank's scratch slots; the accumulator of bf16 is f32 and takes two. */
export const scratch = { accumulator: 0, own: 2, result: 3 } as const;

/**
 * Adds the next packet of every member, `length` bytes each, this rank's piece lying in scratch, and
 * puts the sum at `result`, a byte offset in the arena. `verify` checks a packet before it is used.
 */
export function addInOrder(
  endpoint: Endpoint,
  key: PacketKey,
  { type, order }: Sum,
  length: Bytes,
  result: number,
  verify: (slot: number, peer: number) => void,
): void {
  const { kernel, rank } = endpoint;
  const accumulator = endpoint.scratch(scratch.accumulator);
  const n = length / elementBytes(type);
  const last = order.length - 1;
  let left = accumulator;
  let held = -1;
  order.forEach((peer, position) => {
    let from = endpoint.scratch(scratch.own);
    if (peer !== rank) {
      const slot = endpoint.open(peer, key);
      verify(slot, peer);
      from = slot + slotHeaderBytes;
    }
    if (type === "bf16") {
      if (position === 0) kernel.widenBf16(accumulator, from, n);
      else kernel.addBf16(accumulator, from, n);
    } else if (position > 0) {
      add(kernel, type, position === last ? result : accumulator, left, from, n);
      left = accumulator;
      if (held >= 0) endpoint.release(held, key);
      held = -1;
    } else if (peer === rank) {
      left = from;
    } else if (endpoint.parked(peer, key)) {
      // The next packet opened may take its place.
      kernel.move(accumulator, from, length);
    } else {
      // The first operand stays in its slot until the second has come.
      [left, held] = [from, peer];
      return;
    }
    if (peer !== rank) endpoint.release(peer, key);
  });
  if (type === "bf16") kernel.narrowBf16(result, accumulator, n);
}
