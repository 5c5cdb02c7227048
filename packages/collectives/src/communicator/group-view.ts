/** What the operations need to know of a group to make their messages. */
import type { Bytes } from "@trireme/core";
import { type Elements, elementType } from "./element-type.ts";
import type { Message, Sum } from "./parts.ts";

export class GroupView {
  readonly rank: number;
  readonly ranks: number;
  readonly slotBytes: Bytes;
  /** Ranks of the arena, in the order of rank of the group. */
  readonly members: readonly number[];

  constructor(rank: number, members: readonly number[], slotBytes: Bytes) {
    this.rank = rank;
    this.ranks = members.length;
    this.members = members;
    this.slotBytes = slotBytes;
  }

  /** One of something for each other rank, from the next one on, so that not all begin with rank 0. */
  toOthers<T>(make: (rank: number) => T): T[] {
    const { rank, ranks } = this;
    return Array.from({ length: ranks - 1 }, (_, i) => make((rank + 1 + i) % ranks));
  }

  message(rank: number, phase: number, bytes: Uint8Array, count: number): Message {
    return { peer: this.members[rank]!, phase, bytes, count };
  }

  sum(data: Elements, own: Uint8Array, output: Uint8Array, feeds: boolean): Sum {
    return { type: elementType(data), own, output, order: this.members, feeds };
  }
}
