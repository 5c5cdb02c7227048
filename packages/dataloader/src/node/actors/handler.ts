/** What an actor does with a message. */

/** Answers a message; may be a promise. What it throws is the answer as well. */
export type Handler = (message: unknown) => unknown;
