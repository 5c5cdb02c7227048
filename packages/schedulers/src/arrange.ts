/**
 * Unequal devices in one pipeline (Yan et al., HexiScale, MLSys 2026): which device takes which place,
 * and how many layers each.
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import { type Balance, balanceStages } from "./partition.ts";

/** A device that can hold one stage. */
export interface StageDevice {
  /** Speed relative to the device that `cost` is for. */
  readonly speed: number;
  readonly memory: Bytes;
}

export interface ArrangeOptions {
  readonly elements: string;
  readonly devices: readonly StageDevice[];
  /** Time of an element on a device of speed 1. */
  readonly cost: (element: number) => Seconds;
  /** Memory of an element at a position in the pipeline: earlier stages hold more activations. */
  readonly memory?: (element: number, stage: number) => Bytes;
}

/** Devices beyond this are arranged by exchanges, not by trying all orders. */
const mostPermuted = 7;

/**
 * Puts unequal devices in order and balances the chain over them: all orders of up to 7 devices (the
 * optimum), else exchanges of two devices from the best of a few orders while the bottleneck falls.
 */
export function arrangeDevices(
  o: ArrangeOptions,
):
  | (Balance & { readonly order: readonly number[] })
  | { readonly ok: false; readonly reason: string } {
  if (o.devices.length === 0) return { ok: false, reason: "there are no devices" };
  for (const [i, d] of o.devices.entries()) {
    if (!(d.speed > 0 && d.speed < Infinity && d.memory >= 0)) {
      throw new TriremeError(
        "PARTITION",
        `device ${i} has speed ${d.speed} and memory ${d.memory}; speed is above 0, memory at least 0`,
      );
    }
  }
  const balance = (order: readonly number[]): Balance =>
    balanceStages({
      elements: o.elements,
      ranks: order.length,
      cost: (e, s) => o.cost(e) / o.devices[order[s]!]!.speed,
      ...(o.memory === undefined ? {} : { memory: o.memory }),
      memoryLimit: (s) => o.devices[order[s]!]!.memory,
    });
  let best: { order: readonly number[]; balance: Balance } | undefined;
  const consider = (order: readonly number[]): boolean => {
    const b = balance(order);
    const better =
      b.ok && (best === undefined || !best.balance.ok || b.bottleneck < best.balance.bottleneck);
    if (better || best === undefined) best = { order, balance: b };
    return better;
  };
  const given = o.devices.map((_, i) => i);
  const by = (key: (d: StageDevice) => number): number[] =>
    given.toSorted((a, b) => key(o.devices[b]!) - key(o.devices[a]!));
  if (given.length <= mostPermuted) {
    for (const order of permutations(given)) consider(order);
  } else {
    for (const order of [given, by((d) => d.memory), by((d) => d.speed)]) consider(order);
    for (let improved = true; improved;) {
      improved = false;
      for (let i = 0; i < given.length; i++) {
        for (let j = i + 1; j < given.length; j++) {
          const order = [...(best?.order ?? given)];
          [order[i], order[j]] = [order[j]!, order[i]!];
          if (consider(order)) improved = true;
        }
      }
    }
  }
  return { ...best!.balance, order: best!.order };
}

function* permutations(items: readonly number[]): Generator<number[]> {
  if (items.length === 0) yield [];
  for (const [i, first] of items.entries()) {
    for (const rest of permutations(items.toSpliced(i, 1))) yield [first, ...rest];
  }
}
