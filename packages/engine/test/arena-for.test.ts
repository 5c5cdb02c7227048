/** Room between ranks: how far a sender gets ahead of a receiver that is not there. */
import { createCommunicator } from "@trireme/collectives";
import { boundaryBytes } from "@trireme/workload";
import { expect, test } from "vitest";
import { arenaFor } from "../src/rank/arena-for.ts";
import { smallRun } from "./small-run.ts";

test.each([
  [2, 2 ** 20],
  [8, 2 ** 22],
  [8, 3 * 2 ** 20],
  // Twice as much is more than a 64th of it.
  [8, 12 * 2 ** 20],
  [200, 2 ** 12],
])(
  "among %i ranks, activations of %i bytes: two leave at once while all channels fit 1 GiB",
  (ranks, bytes) => {
    const run = smallRun({ pp: ranks > 2 ? 4 : 2 }, { hidden: bytes / (4 * 16), heads: 4 });
    expect(boundaryBytes(run.model, run.plan)).toBe(bytes);
    const memory = arenaFor(run, ranks);
    const c = createCommunicator({ memory, rank: 0, ranks, now: () => 0 });
    const activation = new Float32Array(bytes / 4);
    const sends = [0, 1].map(() => c.send(activation, 1).done);
    expect(sends).toEqual([true, bytes <= 2 ** 22]);
  },
);
