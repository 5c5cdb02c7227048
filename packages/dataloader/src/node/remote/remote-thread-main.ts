/** What runs beside a thread that waits for remote bytes: opens the object, then answers each request. */
import { parentPort, workerData } from "node:worker_threads";
import { TriremeError } from "@trireme/core";
import {
  type RemoteOpened,
  type RemoteRequest,
  type RemoteThreadData,
  answer,
} from "./blocking-reader.ts";
import type { RemoteObject } from "./remote-object.ts";
import { type RemoteReader, openRemote } from "./remote-reader.ts";

const { recipe, options, control, data }: RemoteThreadData = workerData;
const words = new Int32Array(control);
const bytes = new Uint8Array(data);

async function open(): Promise<RemoteReader> {
  const module: Readonly<Record<string, (options: unknown) => RemoteObject>> = await import(
    recipe.module
  );
  const make = module[recipe.function];
  if (make === undefined)
    throw new TriremeError("REMOTE", `${recipe.module} has no function ${recipe.function}`);
  return openRemote(make(recipe.options), options);
}

function said(error: unknown): { readonly code: string; readonly message: string } {
  return {
    code: error instanceof TriremeError ? error.code : "REMOTE",
    message: error instanceof Error ? error.message : String(error),
  };
}

async function serve(reader: RemoteReader, { id, offset, length }: RemoteRequest): Promise<void> {
  let state: number = answer.bytes;
  let got = length;
  try {
    // Shared memory takes no bytes from the network by itself.
    const into = new Uint8Array(length);
    await reader.read(offset, into);
    bytes.set(into);
  } catch (error) {
    const { code, message } = said(error);
    const text = new TextEncoder().encode(`${code}\n${message}`).subarray(0, bytes.length);
    bytes.set(text);
    state = answer.error;
    got = text.length;
  }
  Atomics.store(words, 1, got);
  Atomics.store(words, 2, id);
  Atomics.store(words, 0, state);
  Atomics.notify(words, 0);
}

try {
  const reader = await open();
  parentPort?.on("message", (request: RemoteRequest) => void serve(reader, request));
  const opened: RemoteOpened = { kind: "opened", size: reader.size };
  parentPort?.postMessage(opened);
} catch (error) {
  const failed: RemoteOpened = { kind: "error", ...said(error) };
  parentPort?.postMessage(failed);
}
