// Slow: up to 33 threads, every algorithm that serves each count, at six sizes.
import { communicatorArena } from "@trireme/collectives";
import { afterAll, expect, test } from "vitest";
import { Ranks, values } from "../ranks.ts";

const threads = new Ranks();
afterAll(() => threads.stop());

test.each(Array.from({ length: 33 }, (_, i) => i + 1))(
  "every algorithm executed on %i ranks equals the plain result",
  async (ranks) => {
    const sizes = [0, 1, ranks - 1, ranks, 127, 4096];
    const memory = communicatorArena(ranks, { slotBytes: 8192, slots: 4 });
    const outcomes = await threads.run<string[]>("plans", ranks, {
      memory,
      deadline: 120,
      argument: sizes,
    });
    expect(values(outcomes)).toEqual(Array.from({ length: ranks }, () => []));
  },
);
