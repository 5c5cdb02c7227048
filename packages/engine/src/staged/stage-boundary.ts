/**
 * How ranks of neighbouring stages give each other what passes between them: each to the one in its own
 * place of the next stage; or, where stages differ in width, a leader sends all, and the leader there
 * hands it out (HexiScale, arXiv 2409.01143, section 3).
 */
import type { Communicator, Elements, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Pool } from "../memory/pool.ts";
import { over } from "../weights/works.ts";

export interface StageBoundary {
  /** Starts to send to a stage. With `isSplit`, the rows of a rank are its part of the stage's. */
  send(data: Elements, to: number, isSplit: boolean): Sending;
  /** Receives from a stage; returns the bytes that came from there to this rank. */
  receive(data: Elements, from: number, isSplit: boolean): Bytes;
}

/** What is on its way to another stage. */
interface Sending {
  readonly work: Work;
  /** Bytes of it that this rank sends there; 0 where another rank of its stage sends for all. */
  readonly bytes: Bytes;
}

/** Rank to rank; `rankOfStage` are world ranks. */
export function directBoundary(
  communicator: Communicator,
  rankOfStage: readonly number[],
): StageBoundary {
  return {
    send: (data, to) => sending(communicator, data, rankOfStage[to]!),
    receive: (data, from) => {
      communicator.receive(data, rankOfStage[from]!).wait();
      return data.byteLength;
    },
  };
}

/** Leader to leader; `tensor` are the ranks of the own stage, the leader first; undefined for one. */
export function leaderBoundary(
  communicator: Communicator,
  leaders: readonly number[],
  tensor: Communicator | undefined,
  pool: Pool,
): StageBoundary {
  if (tensor === undefined) return directBoundary(communicator, leaders);
  const isLeader = tensor.rank === 0;
  /** Room for the elements of all ranks, and how it is given back. */
  const whole = (data: Elements): Room => {
    const bytes = data.byteLength * tensor.ranks;
    const pointer = pool.allocateBytes(bytes);
    // Only now: a memory that grows has another buffer.
    const { buffer } = pool.memory;
    const elements =
      data instanceof Uint16Array
        ? new Uint16Array(buffer, pointer, bytes / 2)
        : new Float32Array(buffer, pointer, bytes / 4);
    return { elements, free: () => pool.freeBytes(pointer, bytes) };
  };
  return {
    send: (data, to, isSplit) => {
      if (!isSplit) return isLeader ? sending(communicator, data, leaders[to]!) : nothing;
      const all = whole(data);
      tensor.allGather(data, all.elements).wait();
      if (isLeader) {
        const { work, bytes } = sending(communicator, all.elements, leaders[to]!);
        return { work: freeing(work, all), bytes };
      }
      all.free();
      return nothing;
    },
    receive: (data, from, isSplit) => {
      if (!isSplit) {
        if (isLeader) communicator.receive(data, leaders[from]!).wait();
        tensor.broadcast(data, 0).wait();
        return isLeader ? data.byteLength : 0;
      }
      if (!isLeader) {
        tensor.scatter(undefined, data, 0).wait();
        return 0;
      }
      const all = whole(data);
      communicator.receive(all.elements, leaders[from]!).wait();
      tensor.scatter(all.elements, data, 0).wait();
      all.free();
      return all.elements.byteLength;
    },
  };
}

const nothing: Sending = { work: over, bytes: 0 };

function sending(communicator: Communicator, data: Elements, to: number): Sending {
  return { work: communicator.send(data, to), bytes: data.byteLength };
}

interface Room {
  readonly elements: Float32Array | Uint16Array;
  readonly free: () => void;
}

/** A send that gives its room back when it is over. */
function freeing(work: Work, room: Room): Work {
  let held = true;
  const free = (): void => {
    if (held) room.free();
    held = false;
  };
  return {
    get done(): boolean {
      const isOver = work.done;
      if (isOver) free();
      return isOver;
    },
    wait: () => {
      work.wait();
      free();
    },
  };
}
