/** What runs on a tokenising thread: restores its tokenizer, then answers batches in their order. */
import { parentPort, workerData } from "node:worker_threads";
import { TriremeError } from "@trireme/core";
import { type TextBatch, tokenizeBatch } from "./tokenize-batch.ts";
import type { TokenizerThreadData, TokenizerThreadReply } from "./tokenizer-threads.ts";
import { tokenizerOf } from "./tokenizer-of.ts";

const { tokenizer: json, layout }: TokenizerThreadData = workerData;
const tokenizer = tokenizerOf(json);
// The first batch tells; it must not be an unhandled rejection before.
tokenizer.catch(() => undefined);

parentPort?.on("message", (batch: TextBatch) => {
  void answer(batch);
});

async function answer(batch: TextBatch): Promise<void> {
  try {
    const tokens = tokenizeBatch(await tokenizer, layout, batch);
    const reply: TokenizerThreadReply = { kind: "tokens", tokens };
    const { bytes, lengths, textBytes } = tokens;
    parentPort?.postMessage(reply, [bytes.buffer, lengths.buffer, textBytes.buffer]);
  } catch (error) {
    const code = error instanceof TriremeError ? error.code : "TOKENIZER";
    const message = error instanceof Error ? error.message : String(error);
    const reply: TokenizerThreadReply = { kind: "error", code, message };
    parentPort?.postMessage(reply);
  }
}
