/**
 * An actor: something on a thread, in a process or right here that answers messages one after the
 * other. Whoever asks waits no longer than a deadline, and is told who did not answer.
 */
import type { ChildProcess } from "node:child_process";
import type { Worker } from "node:worker_threads";
import { type Seconds, TriremeError } from "@trireme/core";
import type { Handler } from "./handler.ts";
import { type ActorRole, handlerOf } from "./roles.ts";
import { startProcess } from "../process.ts";
import { startThread } from "../thread.ts";

/** Where an actor runs. "inline": in this thread, for small data and for tests. */
export type ActorKind = "thread" | "process" | "inline";

/** All of them. */
export const actorKinds: readonly ActorKind[] = ["thread", "process", "inline"];

/** What is asked. */
export interface ActorRequest {
  readonly id: number;
  readonly message: unknown;
}

/** What is answered. */
export type ActorReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly code: string; readonly error: string };

/** A running actor. */
export interface Actor {
  readonly name: string;
  /** Its process, where it has one of its own. */
  readonly pid: number | undefined;
  /**
   * Asks. Rejects with the actor's own error; with code "ACTOR" where it has died or `seconds` have
   * passed without an answer, "ACTOR_ENDED" where it was killed from here.
   */
  request(message: unknown, seconds: Seconds): Promise<unknown>;
  /** Ends it at once, as a crash would: what it was asked rejects. */
  kill(): void;
}

/** Starts an actor. */
export function startActor(kind: ActorKind, name: string, role: ActorRole): Actor {
  switch (kind) {
    case "thread":
      return threadActor(name, role);
    case "process":
      return processActor(name, role);
    case "inline":
      return inlineActor(name, role);
  }
}

/** Questions without an answer yet. */
class Pending {
  readonly #name: string;
  readonly #asked = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (e: Error) => void }
  >();
  #next = 0;
  #gone: TriremeError | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  ask(send: (request: ActorRequest) => void, message: unknown, seconds: Seconds): Promise<unknown> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => {
          this.#asked.delete(id);
          reject(new TriremeError("ACTOR", `${this.#name} has not answered for ${seconds} s`));
        },
        Math.min(seconds * 1000, 2 ** 31 - 1),
      );
      const done = (): void => clearTimeout(late);
      this.#asked.set(id, {
        resolve: (value) => (done(), resolve(value)),
        reject: (error) => (done(), reject(error)),
      });
      try {
        send({ id, message });
      } catch (cause) {
        // Such as a message that cannot be copied: nobody will answer it.
        this.#asked.delete(id);
        done();
        throw cause;
      }
    });
  }

  answer(reply: ActorReply): void {
    const asked = this.#asked.get(reply.id);
    this.#asked.delete(reply.id);
    if ("error" in reply) asked?.reject(new TriremeError(reply.code, reply.error));
    else asked?.resolve(reply.value);
  }

  end(reason: string, code = "ACTOR"): void {
    this.#gone ??= new TriremeError(code, `${this.#name} ${reason}`);
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const { reject } of asked) reject(this.#gone);
  }
}

function threadActor(name: string, role: ActorRole): Actor {
  const worker: Worker = startThread("loader-actor", role);
  const pending = new Pending(name);
  worker.on("message", (reply: ActorReply) => pending.answer(reply));
  worker.on("error", (error) => pending.end(`failed: ${error.message}`));
  worker.on("exit", (code) => pending.end(`ended with code ${code}`));
  // One that is forgotten must not keep the process alive; a question's deadline does, until it is answered.
  worker.unref();
  return {
    name,
    pid: undefined,
    request: (message, seconds) =>
      pending.ask((request) => worker.postMessage(request), message, seconds),
    kill() {
      pending.end("was ended", "ACTOR_ENDED");
      void worker.terminate();
    },
  };
}

function processActor(name: string, role: ActorRole): Actor {
  const child: ChildProcess = startProcess("loader-actor");
  const pending = new Pending(name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its main module sends nothing else
  child.on("message", (reply) => pending.answer(reply as ActorReply));
  child.on("error", (error) => pending.end(`failed: ${error.message}`));
  child.on("exit", (code, signal) => pending.end(`ended with ${signal ?? `code ${code}`}`));
  const send = (message: unknown): void => {
    // A pipe that has just broken is told by "exit".
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests and roles are objects
    child.send(message as object, () => undefined);
  };
  send(role);
  child.unref();
  child.channel?.unref();
  return {
    name,
    pid: child.pid,
    request: (message, seconds) => pending.ask(send, message, seconds),
    kill() {
      pending.end("was ended", "ACTOR_ENDED");
      child.kill("SIGKILL");
    },
  };
}

function inlineActor(name: string, role: ActorRole): Actor {
  const pending = new Pending(name);
  const handler = handlerOf(role);
  const serve = server(handler, (reply) => pending.answer(reply));
  let alive = true;
  return {
    name,
    pid: undefined,
    request: (message, seconds) =>
      pending.ask((request) => void (alive && serve(request)), message, seconds),
    kill() {
      if (!alive) return;
      alive = false;
      pending.end("was ended", "ACTOR_ENDED");
      handler.then(
        (opened) => opened.close?.(),
        () => undefined,
      );
    },
  };
}

/** Answers requests in the order in which they come, one at a time. */
export function server(
  handler: Promise<Handler>,
  reply: (reply: ActorReply) => void,
): (request: ActorRequest) => void {
  let last: Promise<void> = Promise.resolve();
  // The first request tells; it must not be an unhandled rejection before.
  handler.catch(() => undefined);
  return ({ id, message }) => {
    last = last.then(async () => {
      try {
        reply({ id, value: await (await handler)(message) });
      } catch (error) {
        const code = error instanceof TriremeError ? error.code : "LOADER";
        reply({ id, code, error: error instanceof Error ? error.message : String(error) });
      }
    });
  };
}
