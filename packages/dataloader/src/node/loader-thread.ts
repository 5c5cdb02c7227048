/** Loaders on threads of their own: batches of Megatron files, made beside the training loop. */
import { type Seconds, TriremeError } from "@trireme/core";
import type { BatchWorker } from "../batch-stream.ts";
import type { Batch, LoaderOptions } from "../loader.ts";
import { startThread } from "./thread.ts";

/** What a thread loads: plain data, so that it can be handed over. */
export interface LoaderThreadOptions extends Omit<LoaderOptions, "dataset"> {
  /** Megatron datasets, `<prefix>.bin` and `<prefix>.idx` each, read one after the other. */
  readonly prefixes: readonly string[];
  /**
   * Time for a batch, the first with the opening of the files; a thread that takes longer is ended, as
   * one whose disk hangs. Default 600.
   */
  readonly deadline?: Seconds;
}

/** What a thread answers. */
export type LoaderThreadReply =
  | { readonly kind: "batch"; readonly batch: Batch }
  | { readonly kind: "error"; readonly code: string; readonly message: string };

/** A worker of `streamBatches` that is a thread. */
export interface LoaderThread extends BatchWorker {
  /** Ends the thread at once, as a crash would: what it was making rejects. */
  kill(): void;
}

/** Starts a thread. It opens its files by itself; what is wrong with them rejects the first batch. */
export function startLoaderThread(options: LoaderThreadOptions): LoaderThread {
  const { deadline = 600, ...loading } = options;
  if (!(deadline > 0))
    throw new TriremeError("LOADER_THREAD", `deadline ${deadline} s is not positive`);
  const worker = startThread("loader-thread", loading);
  let waiting: { resolve: (batch: Batch) => void; reject: (error: Error) => void } | undefined;
  let gone: Error | undefined;
  const end = (error: Error): void => {
    gone ??= error;
    waiting?.reject(error);
    waiting = undefined;
  };
  worker.on("message", (reply: LoaderThreadReply) => {
    const asked = waiting;
    waiting = undefined;
    if (reply.kind === "batch") asked?.resolve(reply.batch);
    else asked?.reject(new TriremeError(reply.code, reply.message));
  });
  worker.on("error", end);
  worker.on("exit", (code) =>
    end(new TriremeError("LOADER_THREAD", `a loader thread ended with code ${code}`)),
  );
  // A stream that is forgotten must not keep the process alive.
  worker.unref();
  const stop = (): void => void worker.terminate();
  return {
    batch(step) {
      if (gone !== undefined) return Promise.reject(gone);
      if (waiting !== undefined) {
        return Promise.reject(
          new TriremeError("LOADER_THREAD", "a loader thread makes one batch at a time"),
        );
      }
      let late: NodeJS.Timeout | undefined;
      return new Promise<Batch>((resolve, reject) => {
        waiting = { resolve, reject };
        late = setTimeout(
          () => {
            end(
              new TriremeError(
                "LOADER_THREAD",
                `a loader thread has not made step ${step} within ${deadline} s`,
              ),
            );
            stop();
          },
          Math.min(1000 * deadline, 2 ** 31 - 1),
        );
        // Held while someone waits for it.
        worker.ref();
        worker.postMessage(step);
      }).finally(() => {
        clearTimeout(late);
        worker.unref();
      });
    },
    close: stop,
    kill: stop,
  };
}
