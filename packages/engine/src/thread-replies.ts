/** What threads answer, together. */
import { TriremeError } from "@trireme/core";
import type { Failure, Value } from "./protocol.ts";

/** A reply of one kind. */
export type Reply<K extends Value["kind"]> = Extract<Value, { kind: K }>;

/**
 * Every rank's reply. Throws the error of the one that failed first by its own doing, the assistant
 * that stands for other ranks among them.
 */
export async function allReplies<K extends Value["kind"]>(
  kind: K,
  waiting: readonly Promise<Value | Failure>[],
  assisted: Promise<Value | Failure> | undefined,
): Promise<Reply<K>[]> {
  const replies = await Promise.all(waiting);
  const others = assisted === undefined ? [] : [await assisted];
  const failures = [...replies, ...others].filter((reply) => reply.kind === "failure");
  const [cause] = failures.toSorted((a, b) => Number(isEcho(a)) - Number(isEcho(b)));
  if (cause !== undefined) throw new TriremeError(cause.code, cause.message);
  return replies.map((reply) => {
    if (!isReply(reply, kind)) throw new Error(`asked for ${kind}, got ${reply.kind}`);
    return reply;
  });
}

function isReply<K extends Value["kind"]>(reply: Value | Failure, kind: K): reply is Reply<K> {
  return reply.kind === kind;
}

/** Whether a rank only reports that a peer failed. */
function isEcho({ code }: Failure): boolean {
  return code === "ABORTED" || code === "CLOSED" || code === "STOPPED";
}
