import { it } from "vitest";
import { expectSameBatchesAfterAKill } from "../driver/fed-job.ts";

it("ranks that are processes read on where they were saved when one is killed, from a new loader", async () => {
  await expectSameBatchesAfterAKill("process");
}, 60_000);
