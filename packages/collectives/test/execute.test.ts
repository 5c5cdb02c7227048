import { afterAll, expect, test } from "vitest";
import { Ranks, values } from "./ranks.ts";

const threads = new Ranks();
afterAll(() => threads.stop());

test.each([1, 2, 3, 4])(
  "every algorithm executed on %i ranks equals the plain result",
  async (ranks) => {
    const sizes = [0, 1, ranks - 1, ranks, 13];
    const outcomes = await threads.run<string[]>("plans", ranks, { argument: sizes });
    expect(values(outcomes)).toEqual(Array.from({ length: ranks }, () => []));
  },
);
