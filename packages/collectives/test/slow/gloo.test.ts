// Slow: Gloo's own grids of ranks and sizes, up to 32 threads.
import { communicatorArena } from "@trireme/collectives";
import { afterAll, expect, test } from "vitest";
import { Ranks, values } from "../ranks.ts";

const threads = new Ranks();
afterAll(() => threads.stop());

const bases: Record<number, number[]> = { 2: [1, 2, 4, 8, 16], 3: [1, 3, 9, 27], 4: [1, 4, 16] };
const halving = new Set([1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 24, 32]);

test.each([...Array.from({ length: 16 }, (_, i) => i + 1), 24, 27, 32])(
  "Gloo's all-reduce grid on %i ranks",
  async (ranks) => {
    const algorithm = (name: string, sizes: number[], more: object = {}): object[] =>
      sizes.map((size) => ({ operation: "all-reduce", algorithm: name, ranks, size, ...more }));
    const cases = [
      ...(ranks <= 15 ? algorithm("ring", [0, 4, 100, 1000, 10_000]) : []),
      ...(halving.has(ranks) ? algorithm("rabenseifner", [0, 1, 64, 1000]) : []),
      ...Object.entries(bases).flatMap(([base, counts]) =>
        counts.includes(ranks) ? algorithm("bcube", [0, 1, 64, 1000], { base: Number(base) }) : [],
      ),
    ];
    const memory = communicatorArena(ranks, { slotBytes: 8192, slots: 4 });
    const outcomes = await threads.run<string[]>("gloo", ranks, { memory, argument: cases });
    expect(values(outcomes)).toEqual(Array.from({ length: ranks }, () => []));
  },
);
