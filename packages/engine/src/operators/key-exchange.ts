/**
 * How keys and values of all context-parallel ranks come to each: round a ring behind the attention
 * to those that came before (Liu et al., Ring Attention, 2023), or gathered at once (Llama 3, 2024,
 * section 3.3.2).
 */
import type { Work } from "@trireme/collectives";
import type { LayerGroup } from "../layout/recorded-group.ts";
import type { Tape } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";

/** The keys and values of one rank, and the gradients of them that this rank adds to: pointers. */
type Use = (rank: number, keys: number) => void;
type UseGradient = (rank: number, keys: number, gradient: number) => void;

export interface KeyExchange {
  /** Calls `use` with every rank's keys, this rank's first. `own` is this rank's. */
  forward(own: Tensor, use: Use): void;
  /** The same with room for gradients; `gradient` gets the sum of what all ranks added to this one's. */
  backward(own: Tensor, gradient: Tensor, use: UseGradient): void;
}

export function ringExchange({ pool, kernels }: Tape, group: LayerGroup): KeyExchange {
  const { rank, ranks } = group;
  const [next, previous] = [(rank + 1) % ranks, (rank - 1 + ranks) % ranks];
  const at = (step: number): number => (rank - step + ranks) % ranks;
  const pass = (from: Tensor, to: Tensor): Work[] => [
    group.send(view(pool.memory, from), next),
    group.receive(view(pool.memory, to), previous),
  ];
  const wait = (works: readonly Work[]): void => {
    for (const work of works) work.wait();
  };
  const likeOwn = (own: Tensor): [Tensor, Tensor] => [
    pool.allocate(own.dims),
    pool.allocate(own.dims),
  ];
  return {
    forward: (own, use) => {
      let [here, coming] = likeOwn(own);
      kernels.copy(own.pointer, here.pointer, own.size);
      for (let step = 0; step < ranks; step++) {
        const works = step + 1 < ranks ? pass(here, coming) : [];
        use(at(step), here.pointer);
        wait(works);
        [here, coming] = [coming, here];
      }
      pool.free(here);
      pool.free(coming);
    },
    backward: (own, gradient, use) => {
      let [here, coming] = likeOwn(own);
      let [sum, arriving] = likeOwn(own);
      kernels.copy(own.pointer, here.pointer, own.size);
      kernels.fill(sum.pointer, 0, sum.size);
      for (let step = 0; step < ranks; step++) {
        const works = step + 1 < ranks ? pass(here, coming) : [];
        use(at(step), here.pointer, sum.pointer);
        wait(works);
        // The sums follow their keys, and after a full round are where the keys belong.
        wait(pass(sum, arriving));
        [here, coming] = [coming, here];
        [sum, arriving] = [arriving, sum];
      }
      kernels.copy(sum.pointer, gradient.pointer, sum.size);
      for (const used of [here, coming, sum, arriving]) pool.free(used);
    },
  };
}

export function gatheredExchange({ pool, kernels }: Tape, group: LayerGroup): KeyExchange {
  const { rank, ranks } = group;
  const gather = (own: Tensor): Tensor => {
    const all = pool.allocate([ranks * own.size]);
    group.allGather(view(pool.memory, own), view(pool.memory, all)).wait();
    return all;
  };
  const part = (all: Tensor, r: number): number => all.pointer + r * (all.size / ranks) * 4;
  const order = Array.from({ length: ranks }, (_, step) => (rank - step + ranks) % ranks);
  return {
    forward: (own, use) => {
      const all = gather(own);
      for (const r of order) use(r, part(all, r));
      pool.free(all);
    },
    backward: (own, gradient, use) => {
      const [all, sums] = [gather(own), pool.allocate([ranks * own.size])];
      kernels.fill(sums.pointer, 0, sums.size);
      for (const r of order) use(r, part(all, r), part(sums, r));
      group.reduceScatter(view(pool.memory, sums), view(pool.memory, gradient)).wait();
      pool.free(all);
      pool.free(sums);
    },
  };
}
