/**
 * A remote object as a reader of bytes that waits for them, so that formats read it as they read files.
 * A thread of its own does the network; the reading one sleeps on shared memory until bytes are there.
 */
import { TriremeError } from "@trireme/core";
import type { FileReader } from "../file-reader.ts";
import { startThread } from "../thread.ts";
import type { RemoteObject, RemoteRecipe } from "./remote-object.ts";
import type { RemoteReaderOptions } from "./remote-reader.ts";

/** What the thread starts with. */
export interface RemoteThreadData {
  readonly recipe: RemoteRecipe;
  readonly options: RemoteReaderOptions;
  /** Three 32-bit words: what was answered, how many bytes there are of it, and which request it was. */
  readonly control: SharedArrayBuffer;
  /** Bytes of an answer, or what was wrong as UTF-8. */
  readonly data: SharedArrayBuffer;
}

/** A reading that is asked of the thread. */
export interface RemoteRequest {
  readonly id: number;
  readonly offset: number;
  readonly length: number;
}

/** What the first word says: nothing yet, bytes, or an error. */
export const answer = { none: 0, bytes: 1, error: 2 } as const;

/** What the thread tells once, when it has opened the object. */
export type RemoteOpened =
  | { readonly kind: "opened"; readonly size: number }
  | { readonly kind: "error"; readonly code: string; readonly message: string };

/** Bytes that cross at once. */
const windowBytes = 2 ** 20;

/**
 * Opens an object for reading anywhere in it, as `openFileReader` opens a file. A read blocks its
 * thread until its bytes are there, so put a loader in a worker; `deadline` (default 300 s) bounds each.
 */
export async function openRemoteFileReader(
  object: RemoteObject,
  options: RemoteReaderOptions = {},
): Promise<FileReader> {
  const { recipe, name } = object;
  if (recipe === undefined) {
    throw new TriremeError(
      "REMOTE",
      `${name}: made with a function (such as fetch) that cannot be handed to the reading thread; use openRemote`,
    );
  }
  const { deadline = 300 } = options;
  if (!(deadline > 0))
    throw new TriremeError("REMOTE", `${name}: deadline ${deadline} s; use more than 0`);
  const control = new SharedArrayBuffer(12);
  const data = new SharedArrayBuffer(windowBytes);
  const words = new Int32Array(control);
  const sent: RemoteThreadData = { recipe, options: { ...options, deadline }, control, data };
  const worker = startThread("remote/remote-thread", sent);
  const opened = await new Promise<RemoteOpened>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) =>
      reject(new TriremeError("REMOTE", `${name}: its thread ended with code ${code}`)),
    );
  }).catch(async (cause: unknown) => {
    await worker.terminate();
    throw cause;
  });
  if (opened.kind === "error") {
    await worker.terminate();
    throw new TriremeError(opened.code, opened.message);
  }
  worker.on("error", () => undefined);
  worker.unref();
  let id = 0;
  let closed = false;
  const { size } = opened;
  return {
    name,
    size,
    read(offset, into) {
      if (closed) throw new TriremeError("REMOTE", `${name}: closed`);
      for (let done = 0; done < into.byteLength;) {
        const length = Math.min(windowBytes, into.byteLength - done);
        const request: RemoteRequest = { id: ++id, offset: offset + done, length };
        Atomics.store(words, 0, answer.none);
        worker.postMessage(request);
        // The thread keeps to the deadline itself; this is for a thread that is gone.
        const state = Atomics.wait(words, 0, answer.none, 1000 * (deadline + 5));
        if (state === "timed-out" || Atomics.load(words, 2) !== id)
          throw new TriremeError("REMOTE", `${name}: its thread does not answer`);
        const got = new Uint8Array(data, 0, Atomics.load(words, 1));
        if (Atomics.load(words, 0) === answer.error) {
          const [code, ...message] = new TextDecoder().decode(got.slice()).split("\n");
          throw new TriremeError(code ?? "REMOTE", message.join("\n"));
        }
        into.set(got, done);
        done += got.length;
      }
    },
    close() {
      closed = true;
      void worker.terminate();
    },
  };
}
