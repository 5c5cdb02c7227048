/**
 * A worker that its host's loader feeds: each step it reads its batch, writes the documents in it to
 * LOG, and puts the loader's state beside them, as into a checkpoint. A file in COMMANDS named after
 * its rank kills it.
 */
import { appendFileSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isMainThread, workerData } from "node:worker_threads";
import { rankBatches } from "@trireme/dataloader/node";
import { connectAgent } from "@trireme/runtime/worker";

const agent = connectAgent()!;
const { RANK, TRIREME_GENERATION, STEPS, LOG, COMMANDS } = process.env;
const batches = rankBatches(agent.feed!, { deadline: 20 });
for (let step = agent.step; step <= Number(STEPS); step++) {
  if (!(await agent.begin(step))) break;
  const kill = join(COMMANDS!, `crash-${RANK}`);
  if (existsSync(kill)) {
    rmSync(kill);
    if (isMainThread) process.kill(process.pid, "SIGKILL");
    process.exit(7);
  }
  let next = await batches.next();
  // Batches that were skipped after a loss spike come as well.
  while (next.value !== undefined && next.value.step < step - 1 + agent.skip)
    next = await batches.next();
  if (next.value === undefined) throw new Error(`rank ${RANK} has no data for step ${step}`);
  const tokens = next.value.microbatches.flatMap((each) => [...each.tokens]);
  // Zeros are padding.
  const documents = [...new Set(tokens)].filter((token) => token > 0);
  const line = { generation: Number(TRIREME_GENERATION), rank: Number(RANK), step, documents };
  appendFileSync(LOG!, `${JSON.stringify({ ...line, data: workerData ?? null })}\n`);
  const file = join(COMMANDS!, `loader-${step}.json`);
  writeFileSync(`${file}.${RANK}`, JSON.stringify(await agent.loaderState(step)));
  renameSync(`${file}.${RANK}`, file);
  agent.saved(step);
}
await batches.return();
process.exit(0);
