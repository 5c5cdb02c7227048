/** Threads that tokenise batches: started as there is work for them, each given the least busy's share. */
import type { Worker } from "node:worker_threads";
import { TriremeError } from "@trireme/core";
import { startThread } from "./thread.ts";
import type { TextBatch, TokenBatch, TokenLayout } from "./tokenize-batch.ts";

/** What a thread starts with. */
export interface TokenizerThreadData {
  /** What `toJSON` of the tokenizer gave. */
  readonly tokenizer: unknown;
  readonly layout: TokenLayout;
}

/** What a thread answers. */
export type TokenizerThreadReply =
  | { readonly kind: "tokens"; readonly tokens: TokenBatch }
  | { readonly kind: "error"; readonly code: string; readonly message: string };

interface Waiting {
  readonly resolve: (tokens: TokenBatch) => void;
  readonly reject: (error: Error) => void;
}

/** A thread answers in the order it is asked. */
class TokenizerThread {
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  #gone: Error | undefined;

  constructor(data: TokenizerThreadData) {
    this.#worker = startThread("tokenizer-thread", data);
    this.#worker.on("message", (reply: TokenizerThreadReply) => {
      const asked = this.#waiting.shift();
      if (reply.kind === "tokens") asked?.resolve(reply.tokens);
      else asked?.reject(new TriremeError(reply.code, reply.message));
    });
    const end = (error: Error): void => {
      this.#gone ??= error;
      for (const asked of this.#waiting.splice(0)) asked.reject(error);
    };
    this.#worker.on("error", end);
    this.#worker.on("exit", (code) =>
      end(new TriremeError("TOKENIZER_THREAD", `a tokenising thread ended with code ${code}`)),
    );
  }

  get busy(): number {
    return this.#waiting.length;
  }

  tokenize(batch: TextBatch): Promise<TokenBatch> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(batch);
    });
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Up to `most` threads. */
export class TokenizerThreads {
  readonly #data: TokenizerThreadData;
  readonly #most: number;
  readonly #threads: TokenizerThread[] = [];

  constructor(data: TokenizerThreadData, most: number) {
    this.#data = data;
    this.#most = most;
  }

  tokenize(batch: TextBatch): Promise<TokenBatch> {
    let thread = this.#threads.reduce<TokenizerThread | undefined>(
      (least, candidate) =>
        least !== undefined && least.busy <= candidate.busy ? least : candidate,
      undefined,
    );
    if (thread === undefined || (thread.busy > 0 && this.#threads.length < this.#most)) {
      thread = new TokenizerThread(this.#data);
      this.#threads.push(thread);
    }
    return thread.tokenize(batch);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop()));
  }
}
