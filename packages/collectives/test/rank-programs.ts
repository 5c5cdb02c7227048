/** Programs that `ranks.ts` runs on worker threads. */
import { parentPort } from "node:worker_threads";
import {
  type Communicator,
  type Elements,
  type SharedMemory,
  createCommunicator,
} from "@trireme/collectives";
import { TriremeError } from "@trireme/core";

interface Task {
  readonly program: keyof typeof programs;
  readonly memory: SharedMemory;
  readonly rank: number;
  readonly ranks: number;
  readonly deadline: number;
  readonly argument: unknown;
}

const sleep = (milliseconds: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
};

/** Values whose sum depends on its order. */
function rough(rank: number, count: number): Float32Array {
  const data = new Float32Array(count);
  for (let i = 0; i < count; i++) data[i] = Math.sin(1 + i * 0.7 + rank * 3.1) * 10 ** (rank % 5);
  return data;
}

const programs = {
  /** Every operation at every size, compared here with the plain loop. */
  sweep(c: Communicator, sizes: unknown): string[] {
    const wrong: string[] = [];
    const check = (what: string, size: number, got: Elements, want: (i: number) => number): void => {
      for (let i = 0; i < got.length; i++) {
        if (got[i] !== want(i)) {
          wrong.push(`${what} size ${size}: [${i}] is ${got[i]}, must be ${want(i)}`);
          return;
        }
      }
    };
    const { rank, ranks } = c;
    for (const size of sizes as number[]) {
      const all = Array.from({ length: ranks }, (_, r) => rough(r, size * ranks));
      const sum = new Float32Array(size * ranks);
      for (let i = 0; i < sum.length; i++) {
        let total = all[0]![i]!;
        for (let r = 1; r < ranks; r++) total = Math.fround(total + all[r]![i]!);
        sum[i] = total;
      }
      const reduced = all[rank]!.slice();
      const small = all[rank]!.slice(0, size);
      const [scattered, gathered] = [new Float32Array(size), new Float32Array(size * ranks)];
      const copied = rank === ranks - 1 ? all[rank]!.slice() : new Float32Array(size * ranks);
      const integers = Int32Array.from({ length: size }, (_, i) => i * ranks + rank);
      const works = [
        c.allReduce(reduced),
        c.allReduce(small),
        c.reduceScatter(all[rank]!, scattered),
        c.allGather(all[rank]!.subarray(0, size), gathered),
        c.broadcast(copied, ranks - 1),
        c.allReduce(integers),
        c.barrier(),
      ];
      for (const work of works.toReversed()) work.wait();
      check("all-reduce", size, reduced, (i) => sum[i]!);
      check("all-reduce of a part", size, small, (i) => sum[i]!);
      check("reduce-scatter", size, scattered, (i) => sum[rank * size + i]!);
      check("all-gather", size, gathered, (i) => all[Math.floor(i / size)]![i % size]!);
      check("broadcast", size, copied, (i) => all[ranks - 1]![i]!);
      check("i32", size, integers, (i) => i * ranks * ranks + (ranks * (ranks - 1)) / 2);
    }
    return wrong;
  },

  /** Passes a message round the ring, longer than a channel, while all-reduces are outstanding. */
  ring(c: Communicator): number[] {
    const { rank, ranks } = c;
    const out = new Float32Array(300_000).fill(rank);
    const incoming = new Float32Array(300_000);
    const sum = new Float32Array(100_000).fill(rank + 1);
    const reduced = c.allReduce(sum);
    const sent = c.send(out, (rank + 1) % ranks);
    c.receive(incoming, (rank + ranks - 1) % ranks).wait();
    sent.wait();
    reduced.wait();
    return [incoming[0]!, incoming[299_999]!, sum[0]!, sum[99_999]!];
  },

  /** Rows and columns of a mesh of 2 x 2, all-reduces in both at once and in different orders. */
  mesh(c: Communicator): number[] {
    const { rank } = c;
    const [x, y] = [rank % 2, Math.floor(rank / 2)];
    const row = c.group([2 * y, 2 * y + 1]);
    const column = c.group([x + 2, x]);
    const a = new Float32Array(200_000).fill(10 ** rank);
    const b = new Float32Array(200_000).fill(10 ** rank);
    const calls = [(): { wait(): void } => row.allReduce(a), () => column.allReduce(b)];
    const works = (rank === 0 || rank === 3 ? calls : calls.toReversed()).map((call) => call());
    const world = c.allReduce(new Float32Array(50_000));
    world.wait();
    for (const work of works) work.wait();
    return [a[0]!, a[199_999]!, b[0]!, b[199_999]!, column.rank];
  },

  /** The send is behind an all-reduce that rank 2 joins only after rank 1 tells it to. */
  behind(c: Communicator): number {
    const data = new Float32Array(1_000_000).fill(1);
    const token = new Float32Array(1);
    if (c.rank === 0) {
      const reduced = c.allReduce(data);
      c.send(token.fill(5), 1).wait();
      reduced.wait();
    } else if (c.rank === 1) {
      const reduced = c.allReduce(data);
      c.receive(token, 0).wait();
      c.send(token, 2).wait();
      reduced.wait();
    } else {
      c.receive(token, 1).wait();
      c.allReduce(data).wait();
    }
    return data[999_999]! + token[0]!;
  },

  counts(c: Communicator): void {
    c.barrier().wait();
    c.allReduce(new Float32Array(c.rank === 1 ? 1025 : 262_144)).wait();
  },

  kinds(c: Communicator): void {
    const data = new Float32Array(8);
    if (c.rank === 0) c.broadcast(data, 0).wait();
    else c.broadcast(data, 1).wait();
    c.barrier().wait();
  },

  pairs(c: Communicator): void {
    if (c.rank === 0) c.send(new Float32Array(4), 1).wait();
    else if (c.rank === 1) c.receive(new Int32Array(4), 0).wait();
    c.barrier().wait();
  },

  /** The last rank sleeps through the deadline of the others, then calls. */
  late(c: Communicator, milliseconds: unknown): void {
    c.barrier().wait();
    if (c.rank === c.ranks - 1) sleep(milliseconds as number);
    c.allReduce(new Float32Array(10_000)).wait();
  },

  aborts(c: Communicator): void {
    if (c.rank === 1) c.abort("loss is NaN at step 7");
    c.receive(new Float32Array(1), (c.rank + 1) % c.ranks).wait();
  },

  leaves(c: Communicator): void {
    if (c.rank === 0) return;
    c.allReduce(new Float32Array(4)).wait();
  },

  /** CPU time per second of waiting for a rank that comes a second late. */
  idle(c: Communicator): number {
    c.barrier().wait();
    const before = process.cpuUsage();
    if (c.rank === 0) sleep(1000);
    c.barrier().wait();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  },

  /** Seconds of the fastest of several plain copies, all threads at once. */
  copy(c: Communicator, argument: unknown): number {
    const { elements, repeats } = argument as { elements: number; repeats: number };
    const from = new Float32Array(elements).fill(1);
    const to = new Float32Array(elements).fill(1);
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < repeats; i++) {
      c.barrier().wait();
      const start = performance.now();
      to.set(from);
      best = Math.min(best, performance.now() - start);
    }
    return best / 1000;
  },

  /** Seconds of the fastest of several all-reduces. */
  time(c: Communicator, argument: unknown): number {
    const { elements, repeats } = argument as { elements: number; repeats: number };
    const data = new Float32Array(new SharedArrayBuffer(elements * 4));
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < repeats; i++) {
      c.barrier().wait();
      const start = performance.now();
      c.allReduce(data).wait();
      best = Math.min(best, performance.now() - start);
    }
    return best / 1000;
  },
};

parentPort!.on("message", ({ program, memory, rank, ranks, deadline, argument }: Task) => {
  const c = createCommunicator({
    memory,
    rank,
    ranks,
    deadline,
    now: () => performance.now() / 1000,
  });
  try {
    const value = programs[program](c, argument);
    c.close();
    parentPort!.postMessage({ value });
  } catch (error) {
    const { message } = error as Error;
    const code = error instanceof TriremeError ? error.code : (error as Error).name;
    c.close();
    parentPort!.postMessage({ code, message });
  }
});
