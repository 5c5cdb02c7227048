/**
 * Every operation of a communicator, recorded among all ranks and replayed for some of them, on one
 * thread: calls are started on all ranks and looked at until they are over.
 */
import { communicatorArena, createCommunicator } from "@trireme/collectives";
import type { Communicator, Elements, Work } from "@trireme/collectives";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MemorySink } from "../src/emulation/trace-sink.ts";
import { Replay } from "../src/emulation/replay.ts";
import { ReplayCommunicator } from "../src/emulation/replay-communicator.ts";
import { shardTurns } from "../src/emulation/shard-turns.ts";
import type { Trace } from "../src/emulation/trace.ts";
import { TraceRecorder, TracedCommunicator } from "../src/emulation/traced-communicator.ts";

const ranks = 4;
const all = [0, 1, 2, 3];

/** What a rank calls: its works, and where they put something. */
type Program = (group: Communicator, numbers: Numbers) => { works: Work[]; outputs: Elements[] };
/** Numbers of a rank, of the type under test. */
type Numbers = (count: number) => Elements;

/** Parts of 1, 2, 3 and 4 elements. */
const counts = [1, 2, 3, 4];
const total = 10;

const programs: Record<string, Program> = {
  "all-reduce": (g, n) => {
    const data = n(7);
    return { works: [g.allReduce(data)], outputs: [data] };
  },
  reduce: (g, n) => {
    const data = n(5);
    return { works: [g.reduce(data, 2)], outputs: [data] };
  },
  "reduce-scatter": (g, n) => {
    const [input, output] = [n(3 * g.ranks), n(3)];
    return { works: [g.reduceScatter(input, output)], outputs: [output] };
  },
  "reduce-scatter-v": (g, n) => {
    const output = n(counts[g.rank]!);
    return { works: [g.reduceScatterV(n(total), output, counts)], outputs: [output] };
  },
  "all-gather in place": (g, n) => {
    const output = n(2 * g.ranks);
    const input = output.subarray(2 * g.rank, 2 * g.rank + 2);
    return { works: [g.allGather(input, output)], outputs: [output] };
  },
  "all-gather-v": (g, n) => {
    const output = n(total);
    return { works: [g.allGatherV(n(counts[g.rank]!), output, { counts })], outputs: [output] };
  },
  broadcast: (g, n) => {
    const data = n(6);
    return { works: [g.broadcast(data, 1)], outputs: [data] };
  },
  scatter: (g, n) => {
    const output = n(2);
    const input = g.rank === 3 ? n(2 * g.ranks) : undefined;
    return { works: [g.scatter(input, output, 3)], outputs: [output] };
  },
  "scatter-v": (g, n) => {
    const output = n(counts[g.rank]!);
    const input = g.rank === 0 ? n(total) : undefined;
    return { works: [g.scatterV(input, output, 0, { counts })], outputs: [output] };
  },
  gather: (g, n) => {
    const output = g.rank === 2 ? n(3 * g.ranks) : undefined;
    return { works: [g.gather(n(3), output, 2)], outputs: output === undefined ? [] : [output] };
  },
  "gather-v": (g, n) => {
    const output = g.rank === 1 ? n(total) : undefined;
    const work = g.gatherV(n(counts[g.rank]!), output, 1, { counts });
    return { works: [work], outputs: output === undefined ? [] : [output] };
  },
  "all-to-all in place": (g, n) => {
    const data = n(2 * g.ranks);
    return { works: [g.allToAll(data, data)], outputs: [data] };
  },
  "all-to-all-v": (g, n) => {
    const mine = counts[g.rank]!;
    const output = n(mine * g.ranks);
    const receives = { counts: counts.map(() => mine) };
    return { works: [g.allToAllV(n(total), { counts }, output, receives)], outputs: [output] };
  },
  "messages round a ring, and a barrier": (g, n) => {
    const output = n(4);
    const next = g.send(n(4), (g.rank + 1) % g.ranks);
    const before = g.receive(output, (g.rank + g.ranks - 1) % g.ranks);
    return { works: [next, before, g.barrier()], outputs: [output] };
  },
};

/** Plays the program twice on the ranks' groups, and looks until all is over. */
function play(groups: readonly Communicator[], program: Program, numbers: readonly Numbers[]) {
  const outputs: Elements[][] = groups.map(() => []);
  for (let round = 0; round < 2; round++) {
    const begun = groups.map((group, i) => program(group, numbers[i]!));
    const works = begun.flatMap((b) => b.works);
    const begin = performance.now();
    while (!works.map((work) => work.done).every(Boolean)) {
      if (performance.now() - begin > 10_000) throw new Error("the calls do not end");
    }
    for (const work of works) work.wait();
    begun.forEach((b, i) => outputs[i]!.push(...b.outputs));
  }
  return outputs;
}

function numbersOf(rank: number, type: "f32" | "i32" | "bf16", seed: number): Numbers {
  let next = seed + rank * 7919;
  const draw = (): number => (next = (Math.imul(next, 1_664_525) + 1_013_904_223) | 0);
  return (count) => {
    if (type === "i32") return Int32Array.from({ length: count }, draw);
    if (type === "f32") return Float32Array.from({ length: count }, () => draw() / 1e7);
    // Numbers between ±2^-20 and ±2^20.
    return Uint16Array.from({ length: count }, () => {
      const bits = draw() >>> 16;
      return (bits & 0x807f) | ((107 + ((bits >> 7) % 40)) << 7);
    });
  };
}

const now = (): number => performance.now() / 1e3;

function real(count: number): Communicator[] {
  const memory = communicatorArena(count, { slots: 8, slotBytes: 1024 });
  return Array.from({ length: count }, (_, rank) =>
    createCommunicator({ memory, rank, ranks: count, now, deadline: 5 }),
  );
}

function record(program: Program, numbers: readonly Numbers[]) {
  const sinks = all.map((rank) => new MemorySink(rank));
  const recorders = sinks.map((sink) => new TraceRecorder(sink, now));
  const worlds = real(ranks).map(
    (inner, rank) => new TracedCommunicator(rank, all, recorders[rank]!, inner),
  );
  const groups = worlds.map((world) => world.group(all));
  for (const recorder of recorders) recorder.turn("train");
  const outputs = play(groups, program, numbers);
  const trace: Trace = { shards: sinks.map((sink) => sink.shard()), seed: 7 };
  return { outputs, trace };
}

function replay(live: readonly number[], trace: Trace): Communicator[] {
  const inner = real(live.length);
  return live.map((rank, place) => {
    const own = shardTurns(trace.shards[rank]!);
    const options = { rank, live, real: inner[place]!, trace, carries: true, deadline: 5 };
    const turns = new Replay({ ...options, board: undefined }, own);
    const world = new ReplayCommunicator(turns, all);
    const group = world.group(all);
    turns.beginTurn("train");
    return group;
  });
}

test.each(Object.keys(programs))("%s gives ranks alone what it gave them among all", (name) => {
  const program = programs[name]!;
  fc.assert(
    fc.property(
      fc.subarray(all, { minLength: 1 }),
      fc.constantFrom("f32", "i32", "bf16"),
      fc.integer(),
      (live, type, seed) => {
        const { outputs, trace } = record(
          program,
          all.map((rank) => numbersOf(rank, type, seed)),
        );
        const numbers = live.map((rank) => numbersOf(rank, type, seed));
        const alone = play(replay(live, trace), program, numbers);
        expect(alone).toEqual(live.map((rank) => outputs[rank]!));
      },
    ),
    { numRuns: 20 },
  );
});
