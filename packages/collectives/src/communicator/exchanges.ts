/** Calls that move data as it is. Empty parts travel too, as a packet without payload: that is how a
 * rank that expects some learns that there is none. */
import { type Elements, bytesOf, overlaps } from "./element-type.ts";
import type { GroupView } from "./group-view.ts";
import { type Message, type Parts, phases } from "./parts.ts";

/** Where each rank's part lies in a buffer, in elements. */
export interface Split {
  readonly counts: readonly number[];
  /** Starts of the parts; by default one after the other. */
  readonly offsets?: readonly number[];
}

export function evenSplit(count: number, ranks: number): Split {
  return { counts: Array.from({ length: ranks }, () => count) };
}

function offsetsOf({ counts, offsets }: Split): readonly number[] {
  if (offsets !== undefined) return offsets;
  let end = 0;
  return counts.map((count) => (end += count) - count);
}

/** The bytes of rank r's part. */
function part(data: Elements, split: Split): (rank: number) => Uint8Array {
  const offsets = offsetsOf(split);
  return (rank) => bytesOf(data, offsets[rank], split.counts[rank]);
}

/** Copies unless source and target are the same bytes. */
function copy(from: Uint8Array, to: Uint8Array): void {
  if (from.length > 0) to.set(from);
}

export function allGather(
  group: GroupView,
  input: Elements,
  output: Elements,
  split: Split,
): Parts {
  const partOf = part(output, split);
  copy(bytesOf(input), partOf(group.rank));
  const own = partOf(group.rank);
  const { result } = phases;
  return {
    out: group.toOthers((to) => group.message(to, result, own, input.length)),
    in: group.toOthers((of) => group.message(of, result, partOf(of), split.counts[of]!)),
  };
}

/**
 * A long message leaves the root once, cut into a part for each other rank, and the others pass
 * their parts on to each other (van de Geijn); a short one goes from the root to each.
 */
export function broadcast(group: GroupView, data: Elements, root: number): Parts {
  const { rank, ranks } = group;
  const count = data.length;
  const whole = bytesOf(data);
  const { contribution, result } = phases;
  if (ranks <= 3 || whole.length < ranks * group.slotBytes) {
    return rank === root
      ? { out: group.toOthers((to) => group.message(to, result, whole, count)) }
      : { in: [group.message(root, result, whole, count)] };
  }
  const unit = Math.ceil(count / (ranks - 1));
  const segment = (r: number): Uint8Array => {
    const place = (r - root - 1 + ranks) % ranks;
    const start = Math.min(count, place * unit);
    return bytesOf(data, start, Math.min(unit, count - start));
  };
  if (rank === root) {
    return { out: group.toOthers((to) => group.message(to, contribution, segment(to), count)) };
  }
  const own = group.message(root, contribution, segment(rank), count);
  const others = group.toOthers((r) => r).filter((r) => r !== root);
  return {
    in: [own, ...others.map((of) => group.message(of, result, segment(of), count))],
    out: others.map((to) => ({ ...group.message(to, result, own.bytes, count), relays: own })),
  };
}

export function scatter(
  group: GroupView,
  input: Elements | undefined,
  output: Elements,
  root: number,
  split: Split | undefined,
): Parts {
  const { result } = phases;
  if (group.rank !== root) {
    return { in: [group.message(root, result, bytesOf(output), output.length)] };
  }
  const partOf = part(input!, split!);
  copy(partOf(root), bytesOf(output));
  return {
    out: group.toOthers((to) => group.message(to, result, partOf(to), split!.counts[to]!)),
  };
}

export function gather(
  group: GroupView,
  input: Elements,
  output: Elements | undefined,
  root: number,
  split: Split | undefined,
): Parts {
  const { result } = phases;
  if (group.rank !== root) {
    return { out: [group.message(root, result, bytesOf(input), input.length)] };
  }
  const partOf = part(output!, split!);
  copy(bytesOf(input), partOf(root));
  return {
    in: group.toOthers((of) => group.message(of, result, partOf(of), split!.counts[of]!)),
  };
}

/** In place (`input` and `output` overlap) the input is copied first. */
export function allToAll(
  group: GroupView,
  input: Elements,
  sends: Split,
  output: Elements,
  receives: Split,
): Parts {
  const { rank } = group;
  const source = overlaps(bytesOf(input), bytesOf(output)) ? input.slice() : input;
  const [from, to] = [part(source, sends), part(output, receives)];
  copy(from(rank), to(rank));
  const message =
    (partOf: typeof from, split: Split) =>
    (peer: number): Message =>
      group.message(peer, phases.result, partOf(peer), split.counts[peer]!);
  return {
    out: group.toOthers(message(from, sends)),
    in: group.toOthers(message(to, receives)),
  };
}

export function barrier(group: GroupView): Parts {
  const empty = new Uint8Array(0);
  const messages = group.toOthers((peer) => group.message(peer, phases.result, empty, 0));
  return { out: messages, in: messages };
}
