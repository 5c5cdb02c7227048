/**
 * An actor that is replaced when it dies or does not answer, and asked again: by a shadow that holds
 * the same state where there is one, else by a new one. Requests are such that asking twice does no
 * harm, so nothing is lost and nothing comes twice.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import type { Actor } from "./actor.ts";

/** How an actor is supervised. */
export interface SupervisedOptions {
  /** Starts one, in the state that it must have now. */
  readonly start: () => Actor;
  /** Whether a second one follows along. */
  readonly shadow: boolean;
  /** Time for an answer. */
  readonly deadline: Seconds;
  /** Failures in a row of one request after which it gives up. */
  readonly attempts: number;
}

/** A place for an actor. */
export class Supervised {
  readonly #options: SupervisedOptions;
  #actor: Actor;
  #shadow: Actor | undefined;
  #closed = false;
  /** Actors replaced so far. */
  replaced = 0;
  /** Of these, by a shadow. */
  takenOver = 0;

  constructor(options: SupervisedOptions) {
    this.#options = options;
    this.#actor = options.start();
    if (options.shadow) this.#shadow = options.start();
  }

  get actor(): Actor {
    return this.#actor;
  }

  get shadow(): Actor | undefined {
    return this.#shadow;
  }

  /** Asks the actor, or whoever comes after it. */
  async ask(message: unknown, what: string): Promise<unknown> {
    const { deadline, attempts } = this.#options;
    for (let failures = 0; ;) {
      const actor = this.#actor;
      try {
        return await actor.request(message, deadline);
      } catch (cause) {
        const code = cause instanceof TriremeError ? cause.code : "";
        if (this.#closed || !code.startsWith("ACTOR")) throw cause;
        this.#replace(actor);
        // One that was ended for what it failed another has not failed this request.
        if (code === "ACTOR") failures++;
        if (failures >= attempts && cause instanceof TriremeError) {
          throw new TriremeError(
            "ACTOR",
            `${what} failed ${failures} times, each with a new loader; the last: ${cause.message}`,
            { cause },
          );
        }
      }
    }
  }

  /** Tells the shadow what the actor was asked, so that it holds the same. */
  async mirror(message: unknown): Promise<void> {
    const shadow = this.#shadow;
    if (shadow === undefined) return;
    try {
      await shadow.request(message, this.#options.deadline);
    } catch {
      // A shadow that fails is made anew; an error of the data is the primary's to report.
      if (this.#closed || this.#shadow !== shadow) return;
      shadow.kill();
      this.#shadow = this.#options.start();
    }
  }

  close(): void {
    this.#closed = true;
    this.#actor.kill();
    this.#shadow?.kill();
  }

  #replace(actor: Actor): void {
    // Of several requests that one death fails, the first replaces it.
    if (this.#actor !== actor) return;
    actor.kill();
    this.replaced++;
    if (this.#shadow === undefined) {
      this.#actor = this.#options.start();
      return;
    }
    this.#actor = this.#shadow;
    this.takenOver++;
    this.#shadow = this.#options.start();
  }
}
