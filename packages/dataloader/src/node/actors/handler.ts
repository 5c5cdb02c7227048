/** What an actor does with a message. */

/** Answers a message; may be a promise. What it throws is the answer as well. */
export interface Handler {
  (message: unknown): unknown;
  /** Lets go of files, where the thread or process does not end with the actor. */
  close?(): void;
}
