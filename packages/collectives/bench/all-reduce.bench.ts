import { Ranks, values } from "../test/ranks.ts";

const elements = 16_777_216;
let threads: Ranks | undefined;

/** Best seconds of a plain copy and of an all-reduce on two threads, by turns in one run. */
async function sideBySide(): Promise<{ copy: number; reduce: number }> {
  threads ??= new Ranks();
  const runs = values(
    await threads.run<{ copy: number; reduce: number }>("ratio", 2, {
      argument: { elements, repeats: 15 },
    }),
  );
  return {
    copy: Math.max(...runs.map((run) => run.copy)),
    reduce: Math.max(...runs.map((run) => run.reduce)),
  };
}

const stop = async (): Promise<void> => {
  await threads?.stop();
  threads = undefined;
};

export const benchmarks = [
  {
    id: "collectives/all-reduce-of-copy",
    what: "bytes that an all-reduce of 64 MiB f32 on 2 ranks moves in a second (2 (n - 1) / n a rank), over those of two threads' plain copies in the same run",
    unit: "ratio",
    better: "higher",
    target: 0.5,
    repeats: 3,
    measure: async (): Promise<number> => {
      const { copy, reduce } = await sideBySide();
      return copy / reduce;
    },
    after: stop,
  },
  {
    id: "collectives/all-reduce-64mib",
    what: "all-reduce of 64 MiB f32 on 2 ranks in one process, beside a plain copy of as much by each",
    unit: "s",
    better: "lower",
    target: null,
    repeats: 3,
    measure: async (): Promise<number> => (await sideBySide()).reduce,
    after: stop,
    peer: {
      name: "two threads' plain copies",
      measure: async (): Promise<number> => (await sideBySide()).copy,
    },
  },
];
