/** A rank: reads steps of its feed and prints their tokens, one line a step. */
import { rankBatches } from "@trireme/dataloader/node";
import { decodeFeed } from "@trireme/runtime/node";

const feed = decodeFeed(process.env["TRIREME_FEED"] ?? "");
for await (const { step, microbatches } of rankBatches(feed, { deadline: 20 })) {
  const tokens = microbatches.map((microbatch) => [...microbatch.tokens]);
  process.stdout.write(`${JSON.stringify({ step, tokens })}\n`);
}
