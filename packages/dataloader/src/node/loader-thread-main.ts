/** What runs on a loader thread: opens the files, then answers each step with its batch. */
import { parentPort, workerData } from "node:worker_threads";
import { TriremeError } from "@trireme/core";
import { type Loader, createLoader } from "../loader.ts";
import { concatenateSources } from "../token-source.ts";
import type { LoaderThreadOptions, LoaderThreadReply } from "./loader-thread.ts";
import { openMegatronFiles } from "./megatron-files.ts";

async function open({
  prefixes,
  ...options
}: Omit<LoaderThreadOptions, "deadline">): Promise<Loader> {
  const files = await Promise.all(prefixes.map((prefix) => openMegatronFiles(prefix)));
  return createLoader({
    ...options,
    dataset: concatenateSources(files.map(({ source }) => source)),
  });
}

const options: Omit<LoaderThreadOptions, "deadline"> = workerData;
const loader = open(options);
// The first batch tells; it must not be an unhandled rejection before.
loader.catch(() => undefined);

parentPort?.on("message", (step: number) => {
  void answer(step);
});

async function answer(step: number): Promise<void> {
  try {
    const batch = (await loader).batch(step);
    const reply: LoaderThreadReply = { kind: "batch", batch };
    // Handed over, not copied.
    parentPort?.postMessage(reply, [batch.tokens.buffer]);
  } catch (error) {
    const code = error instanceof TriremeError ? error.code : "LOADER_THREAD";
    const message = error instanceof Error ? error.message : String(error);
    const reply: LoaderThreadReply = { kind: "error", code, message };
    parentPort?.postMessage(reply);
  }
}
