/**
 * How ranks of neighbouring stages give each other what passes between them: each to the one in its own
 * place of the next stage; or, where stages differ in width, a leader sends all, and the leader there
 * hands it out (HexiScale, arXiv 2409.01143, section 3).
 */
import type { Communicator, Elements, Work } from "@trireme/collectives";
import type { Pool } from "../pool.ts";
import { type Tensor, view } from "../tensor.ts";

export interface StageBoundary {
  /** Starts to send to a stage. With `isSplit`, the rows of a rank are its part of the stage's. */
  send(data: Elements, to: number, isSplit: boolean): Work;
  /** Receives from a stage. */
  receive(data: Elements, from: number, isSplit: boolean): void;
}

/** Rank to rank; `rankOfStage` are world ranks. */
export function directBoundary(
  communicator: Communicator,
  rankOfStage: readonly number[],
): StageBoundary {
  return {
    send: (data, to) => communicator.send(data, rankOfStage[to]!),
    receive: (data, from) => communicator.receive(data, rankOfStage[from]!).wait(),
  };
}

const over: Work = { done: true, wait: () => {} };

/** Leader to leader; `tensor` are the ranks of the own stage, the leader first; undefined for one. */
export function leaderBoundary(
  communicator: Communicator,
  leaders: readonly number[],
  tensor: Communicator | undefined,
  pool: Pool,
): StageBoundary {
  if (tensor === undefined) return directBoundary(communicator, leaders);
  const isLeader = tensor.rank === 0;
  const whole = (data: Elements): Tensor => pool.allocate([data.length * tensor.ranks]);
  return {
    send: (data, to, isSplit) => {
      if (!isSplit) return isLeader ? communicator.send(data, leaders[to]!) : over;
      const all = whole(data);
      tensor.allGather(data, view(pool.memory, all)).wait();
      if (isLeader)
        return freeing(communicator.send(view(pool.memory, all), leaders[to]!), pool, all);
      pool.free(all);
      return over;
    },
    receive: (data, from, isSplit) => {
      if (!isSplit) {
        if (isLeader) communicator.receive(data, leaders[from]!).wait();
        tensor.broadcast(data, 0).wait();
        return;
      }
      if (!isLeader) {
        tensor.scatter(undefined, data, 0).wait();
        return;
      }
      const all = whole(data);
      communicator.receive(view(pool.memory, all), leaders[from]!).wait();
      tensor.scatter(view(pool.memory, all), data, 0).wait();
      pool.free(all);
    },
  };
}

/** A send that gives its tensor back when it is over. */
function freeing(work: Work, pool: Pool, tensor: Tensor): Work {
  let held = true;
  const free = (): void => {
    if (held) pool.free(tensor);
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
