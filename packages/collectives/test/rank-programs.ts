/** Programs that `ranks.ts` runs on worker threads. */
import { parentPort } from "node:worker_threads";
import {
  type Communicator,
  type CreatePlanOptions,
  type Elements,
  type SharedMemory,
  createCommunicator,
  createPlan,
  execute,
  fromBf16,
  reduceScatterBf16,
  reduceScatterFp8,
  toBf16,
} from "@trireme/collectives";
import { copyBytes } from "@trireme/collectives/node";
import { TriremeError, createRng } from "@trireme/core";
import { variants } from "./plan-variants.ts";

interface Task {
  readonly program: keyof typeof programs;
  readonly memory: SharedMemory;
  readonly rank: number;
  readonly ranks: number;
  readonly deadline: number;
  readonly argument: unknown;
}

const stalls: string[] = [];

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
    const check = (
      what: string,
      size: number,
      got: Elements,
      want: (i: number) => number,
    ): void => {
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

  /** Every algorithm at every size, executed and compared with the plain result. */
  plans(c: Communicator, sizes: unknown): string[] {
    const { rank, ranks } = c;
    const wrong: string[] = [];
    for (const options of variants(ranks)) {
      const plan = createPlan(options);
      const { operation, algorithm } = plan;
      const root = Math.max(0, plan.root);
      for (const size of sizes as number[]) {
        const part = operation === "all-to-all" ? Math.ceil(size / ranks) : size;
        const parts = /gather|scatter|all-to-all/.test(operation) ? part * ranks : part;
        // Small integers name rank and place, and their sums are exact.
        const value = (r: number, i: number): number => 1000 * r + (i % 997);
        const whole = (r: number): Float32Array =>
          Float32Array.from({ length: parts }, (_, i) => value(r, i));
        const sum = (i: number): number => 500 * ranks * (ranks - 1) + ranks * (i % 997);
        const own = Float32Array.from({ length: part }, (_, i) => value(rank, i));
        const gathered = (i: number): number => value(Math.floor(i / part), i % part);
        const cases = {
          "all-reduce": [whole(rank), part, sum],
          reduce: [whole(rank), part, rank === root ? sum : (): number => 0],
          barrier: [whole(rank), part, undefined],
          broadcast: [whole(rank), part, (i: number): number => value(root, i)],
          "reduce-scatter": [whole(rank), part, (i: number): number => sum(rank * part + i)],
          "all-gather": [own, parts, gathered],
          gather: [own, parts, rank === root ? gathered : (): number => 0],
          scatter: [whole(root), part, (i: number): number => value(root, rank * part + i)],
          "all-to-all": [
            whole(rank),
            parts,
            (i: number): number => value(Math.floor(i / part), rank * part + (i % part)),
          ],
        } as const;
        const [input, length, want] = cases[operation];
        const output = new Float32Array(length);
        const full = operation === "all-to-all" ? parts * ranks : parts;
        execute(plan, c, input, output, full);
        if (want === undefined) continue;
        const at = output.findIndex((x, i) => x !== want(i));
        if (at >= 0) {
          wrong.push(
            `${operation} ${algorithm} size ${size}: [${at}] is ${output[at]}, must be ${want(at)}`,
          );
        }
      }
    }
    return wrong;
  },

  /** Largest errors of compressed reduce-scatters, over the sum of the terms' magnitudes. */
  compressed(c: Communicator): { bf16: number; ring: number; fp8: number } {
    const { rank, ranks } = c;
    const [tokens, channels] = [64, 32];
    const all = Array.from({ length: ranks }, (_, r) => {
      const rng = createRng(r);
      return Float32Array.from({ length: tokens * channels }, () => rng.normal());
    });
    const count = (tokens * channels) / ranks;
    const error = (got: ArrayLike<number>): number => {
      let most = 0;
      for (let i = 0; i < count; i++) {
        const terms = all.map((data) => data[rank * count + i]!);
        const exact = terms.reduce((a, b) => a + b, 0);
        const magnitude = terms.reduce((a, b) => a + Math.abs(b), 0);
        most = Math.max(most, Math.abs(got[i]! - exact) / magnitude);
      }
      return most;
    };
    const output = new Float32Array(count);
    reduceScatterBf16(c, all[rank]!, output);
    const bf16 = error(output);
    reduceScatterFp8(c, all[rank]!, output, { tokens, channels, scaling: "per-token" });
    const fp8 = error(output);
    // A ring in bf16 rounds the running sum at every hop.
    const hop = (x: number): number => fromBf16(toBf16(Float32Array.of(x)))[0]!;
    const ring = error(
      Array.from({ length: count }, (_, i) =>
        all.reduce((sum, data) => hop(sum + hop(data[rank * count + i]!)), 0),
      ),
    );
    return { bf16, ring, fp8 };
  },

  /** The variants with counts, as in MPICH's tests, and bf16; what is wrong. */
  counted(c: Communicator): string[] {
    const { rank: r, ranks: n } = c;
    const wrong: string[] = [];
    const check = (what: string, got: Elements, want: (i: number) => number): void => {
      const at = Array.from(got).findIndex((x, i) => x !== want(i));
      if (at >= 0) wrong.push(`${what}: [${at}] is ${got[at]}, must be ${want(at)}`);
    };
    const list = (make: (i: number) => number): number[] =>
      Array.from({ length: n }, (_, i) => make(i));
    // MPICH alltoallv: rank r sends i elements to rank i, at i (i + 1) / 2.
    const send = Int32Array.from({ length: n * n + n }, (_, k) => k + 100 * r);
    const receive = new Int32Array(n * r);
    c.allToAllV(
      send,
      { counts: list((i) => i), offsets: list((i) => (i * (i + 1)) / 2) },
      receive,
      { counts: list(() => r), offsets: list((i) => i * r) },
    ).wait();
    check("all-to-all-v", receive, (k) => 100 * Math.floor(k / r) + (r * (r + 1)) / 2 + (k % r));
    // In place: i + r elements between i and r, both ways.
    const counts = list((i) => i + r);
    const offsets = list((i) => i * 2 * n);
    const both = new Int32Array(2 * n * n);
    for (let i = 0; i < n; i++)
      for (let j = 0; j < i + r; j++) both[offsets[i]! + j] = 100 * r + 10 * i + j;
    c.allToAllV(both, { counts, offsets }, both, { counts, offsets }).wait();
    check("all-to-all-v in place", both, (k) => {
      const [i, j] = [Math.floor(k / (2 * n)), k % (2 * n)];
      return j < i + r ? 100 * i + 10 * r + j : 0;
    });
    // Gloo alltoallv: rank r sends n + r - i items to i.
    const items = Int32Array.from(
      list((i) => n + r - i).flatMap((k, i) =>
        Array.from({ length: k }, (_, j) => r * 127 + i * j),
      ),
    );
    const got = new Int32Array(list((i) => n - r + i).reduce((a, b) => a + b, 0));
    c.allToAllV(items, { counts: list((i) => n + r - i) }, got, {
      counts: list((i) => n - r + i),
    }).wait();
    const expected = list((i) => n - r + i).flatMap((k, i) =>
      Array.from({ length: k }, (_, j) => i * 127 + r * j),
    );
    check("Gloo's all-to-all-v", got, (k) => expected[k]!);
    // Zero counts anywhere: only even ranks have something.
    const sizes = list((i) => (i % 2 === 0 ? i + 1 : 0));
    const total = sizes.reduce((a, b) => a + b, 0);
    const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((a, b) => a + b, 0));
    const owner = (k: number): number => starts.findLastIndex((s, i) => s <= k && sizes[i]! > 0);
    const part = new Float32Array(sizes[r]!).fill(r);
    const whole = new Float32Array(total);
    c.allGatherV(part, whole, { counts: sizes }).wait();
    check("all-gather-v", whole, owner);
    const input = Float32Array.from({ length: total }, (_, k) => k + r);
    const sum = new Float32Array(sizes[r]!);
    c.reduceScatterV(input, sum, sizes).wait();
    check("reduce-scatter-v", sum, (k) => n * (starts[r]! + k) + (n * (n - 1)) / 2);
    const root = n - 1;
    const scattered = new Float32Array(sizes[r]!);
    c.scatterV(r === root ? whole : undefined, scattered, root, { counts: sizes }).wait();
    check("scatter-v", scattered, () => r);
    const back = new Float32Array(r === root ? total : 0);
    c.gatherV(scattered, r === root ? back : undefined, root, { counts: sizes }).wait();
    check("gather-v", back, owner);
    const even = new Float32Array(2).fill(r);
    const all = new Float32Array(r === 0 ? 2 * n : 0);
    c.gather(even, r === 0 ? all : undefined, 0).wait();
    check("gather", all, (k) => Math.floor(k / 2));
    c.scatter(r === 0 ? all : undefined, even.fill(-1), 0).wait();
    check("scatter", even, () => r);
    // Long enough to go in segments, and passed on.
    const long = new Int32Array(700_001).fill(r);
    c.reduce(long, root).wait();
    check("reduce", long, () => (r === root ? (n * (n - 1)) / 2 : r));
    c.broadcast(long, root).wait();
    check("broadcast", long, () => (n * (n - 1)) / 2);
    const square = Int32Array.from({ length: n * 3 }, (_, k) => 100 * r + Math.floor(k / 3));
    c.allToAll(square, square).wait();
    check("all-to-all in place", square, (k) => 100 * Math.floor(k / 3) + r);
    const segments = new Float32Array(5 * n).fill(r);
    c.allGather(segments.subarray(5 * r, 5 * r + 5), segments).wait();
    check("all-gather in place", segments, (k) => Math.floor(k / 5));
    // 256 + n halves are rounded once, at the end: the sum is made in f32.
    const halves = toBf16(new Float32Array(9).fill(r === 0 ? 256 : 0.75));
    c.allReduce(halves).wait();
    const exact = toBf16(Float32Array.of(256 + 0.75 * (n - 1)))[0]!;
    check("bf16", halves, () => exact);
    const nothing = new Float32Array(0);
    for (const work of [
      c.allReduce(nothing),
      c.broadcast(nothing, 0),
      c.allToAll(nothing, nothing),
      c.reduce(nothing, 0),
    ]) {
      work.wait();
    }
    return wrong;
  },

  /** The bits of an all-reduce whose order of addition shows. */
  bits(c: Communicator, count: unknown): number[] {
    const data = rough(c.rank, count as number);
    c.allReduce(data).wait();
    return Array.from(new Uint32Array(data.buffer));
  },

  /** Gloo's all-reduce test: rank r gives j n + r, all get j n² + n (n - 1) / 2. */
  gloo(c: Communicator, cases: unknown): string[] {
    const { rank, ranks } = c;
    const wrong: string[] = [];
    for (const { size, ...options } of cases as (CreatePlanOptions & { size: number })[]) {
      const data = Float32Array.from({ length: size }, (_, j) => j * ranks + rank);
      execute(createPlan(options), c, data.slice(), data, size);
      const at = data.findIndex(
        (x, j) => x !== Math.fround(j * ranks ** 2 + (ranks * (ranks - 1)) / 2),
      );
      if (at >= 0) wrong.push(`${options.algorithm} size ${size}: [${at}] is ${data[at]}`);
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

  /** What the others are told while the last rank sleeps for less than the deadline. */
  warned(c: Communicator, milliseconds: unknown): readonly string[] {
    stalls.length = 0;
    c.barrier().wait();
    if (c.rank === c.ranks - 1) sleep(milliseconds as number);
    c.barrier().wait();
    return stalls;
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

  /** Best seconds of a plain copy by each thread and of an all-reduce of as much, by turns. */
  ratio(c: Communicator, argument: unknown): { copy: number; reduce: number } {
    const { elements, repeats } = argument as { elements: number; repeats: number };
    const from = new Float32Array(elements).fill(1);
    const to = new Float32Array(elements).fill(1);
    const data = new Float32Array(new SharedArrayBuffer(elements * 4)).fill(1);
    const best = { copy: Infinity, reduce: Infinity };
    for (let i = 0; i < repeats; i++) {
      c.barrier().wait();
      let start = performance.now();
      to.set(from);
      best.copy = Math.min(best.copy, performance.now() - start);
      c.barrier().wait();
      start = performance.now();
      c.allReduce(data).wait();
      best.reduce = Math.min(best.reduce, performance.now() - start);
    }
    return { copy: best.copy / 1000, reduce: best.reduce / 1000 };
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
    onStall: (message) => stalls.push(message),
    ownCore: program === "ratio",
    // Odd ranks copy with Node's memcpy, the others with the default.
    ...((program === "ratio" || rank % 2 === 1) && { copy: copyBytes }),
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
