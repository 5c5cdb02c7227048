/**
 * Calls that sum. In shared memory every pair of ranks is one copy apart, so nothing is gained by
 * passing partial sums on: each rank sums one segment straight from the channels of its peers and
 * hands the result out while it sums on ("two-shot"); a small all-reduce goes whole from each rank
 * to each ("one-shot"). All add in the order of rank, so all give the same bits.
 */
import type { Bytes } from "@trireme/core";
import { type Elements, bytesOf } from "./element-type.ts";
import type { GroupView } from "./group-view.ts";
import { type Message, type Parts, phases } from "./parts.ts";

/** Elements of a segment start on a line of memory. */
const segmentUnit = 32;

/** The segment of each rank in a sum over `count` elements; the last ones may be short or empty. */
function segments(count: number, ranks: number): { start: number; count: number }[] {
  const unit = Math.ceil(count / ranks / segmentUnit) * segmentUnit;
  return Array.from({ length: ranks }, (_, rank) => {
    const start = Math.min(count, rank * unit);
    return { start, count: Math.min(count - start, unit) };
  });
}

export function allReduce(group: GroupView, data: Elements, oneShotBytes: Bytes): Parts {
  const { rank, ranks } = group;
  const count = data.length;
  if (ranks === 1 || count === 0) return {};
  if (data.byteLength <= oneShotBytes) {
    // In place: a sum over several pieces would overwrite what has not left.
    const bytes = data.byteLength <= group.slotBytes ? bytesOf(data) : bytesOf(data.slice());
    return {
      out: group.toOthers((to) => group.message(to, phases.contribution, bytes, count)),
      sum: group.sum(data, bytes, bytesOf(data), false),
    };
  }
  const all = segments(count, ranks);
  const segment = (r: number): Uint8Array => bytesOf(data, all[r]!.start, all[r]!.count);
  const mine = segment(rank);
  const some = (message: Message): boolean => message.bytes.length > 0;
  return {
    out: [
      ...group.toOthers((to) => group.message(to, phases.contribution, segment(to), count)),
      ...group.toOthers((to) => group.message(to, phases.result, mine, count)),
    ].filter(some),
    in: group.toOthers((of) => group.message(of, phases.result, segment(of), count)).filter(some),
    ...(mine.length > 0 && { sum: group.sum(data, mine, mine, true) }),
  };
}

/** Sum of `input`'s segment r to rank r; segment r has `counts[r]` elements. */
export function reduceScatter(
  group: GroupView,
  input: Elements,
  output: Elements,
  counts: readonly number[],
): Parts {
  const { rank, ranks } = group;
  const starts = counts.map((_, r) => counts.slice(0, r).reduce((a, b) => a + b, 0));
  const own = bytesOf(input, starts[rank], counts[rank]);
  if (ranks === 1) {
    bytesOf(output).set(own);
    return {};
  }
  return {
    out: group
      .toOthers((to) =>
        group.message(to, phases.contribution, bytesOf(input, starts[to], counts[to]), counts[to]!),
      )
      .filter((message) => message.bytes.length > 0),
    ...(own.length > 0 && { sum: group.sum(output, own, bytesOf(output), false) }),
  };
}

/** Sum of `data` to the root's `data`; each rank sums a segment and sends it there. */
export function reduce(group: GroupView, data: Elements, root: number): Parts {
  const { rank, ranks } = group;
  const count = data.length;
  if (ranks === 1 || count === 0) return {};
  const all = segments(count, ranks);
  const segment = (r: number): Uint8Array => bytesOf(data, all[r]!.start, all[r]!.count);
  const own = segment(rank);
  const some = (message: Message): boolean => message.bytes.length > 0;
  // A rank other than the root keeps its data, and sums beside it.
  const output = rank === root ? own : new Uint8Array(own.length);
  const { contribution, result } = phases;
  return {
    out: [
      ...group.toOthers((to) => group.message(to, contribution, segment(to), count)),
      ...(rank === root ? [] : [group.message(root, result, output, count)]),
    ].filter(some),
    in: (rank === root
      ? group.toOthers((of) => group.message(of, result, segment(of), count))
      : []
    ).filter(some),
    ...(own.length > 0 && { sum: group.sum(data, own, output, true) }),
  };
}
