/** What threads answer, together. */
import { type Seconds, TriremeError } from "@trireme/core";
import type { Failure, Value } from "./protocol.ts";

/** A reply of one kind. */
export type Reply<K extends Value["kind"]> = Extract<Value, { kind: K }>;

/** A reply that is yet to come. */
export interface Pending {
  /** What errors call the thread. */
  readonly title: string;
  readonly reply: Promise<Value | Failure>;
}

/** When threads are no longer waited for. */
export interface Patience {
  /** How long the others may take once one has failed: a thread that stalls never learns of it. */
  readonly seconds: Seconds;
  /** Ends all threads, which settles what they have not answered. */
  readonly giveUp: () => void;
}

/**
 * Every rank's reply. Throws the error of the one that failed first by its own doing, the assistant
 * that stands for other ranks among them, and names those that did not answer after it.
 */
export async function allReplies<K extends Value["kind"]>(
  kind: K,
  ranks: readonly Pending[],
  assistant: Pending | undefined,
  { seconds, giveUp }: Patience,
): Promise<Reply<K>[]> {
  const all = assistant === undefined ? ranks : [...ranks, assistant];
  const missing = new Set(all.map(({ title }) => title));
  let silent: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const answers = await Promise.all(
    all.map(async ({ title, reply }) => {
      const answer = await reply;
      missing.delete(title);
      if (answer.kind === "failure") {
        timer ??= setTimeout(
          () => {
            silent = [...missing];
            giveUp();
          },
          Math.min(seconds * 1e3, longestTimer),
        );
      }
      return answer;
    }),
  );
  clearTimeout(timer);
  const failures = answers.filter((answer) => answer.kind === "failure");
  const [cause] = failures.toSorted((a, b) => Number(isEcho(a)) - Number(isEcho(b)));
  if (cause !== undefined) {
    const stalled = `${silent.join(", ")} did not answer ${kind} in the ${seconds} s after that`;
    const { code, message } = cause;
    throw new TriremeError(code, silent.length === 0 ? message : `${message}; ${stalled}`);
  }
  return answers.slice(0, ranks.length).map((answer) => {
    if (!isReply(answer, kind)) throw new Error(`asked for ${kind}, got ${answer.kind}`);
    return answer;
  });
}

/** Milliseconds: a timer of the host counts them in 31 bits, and one beyond goes off at once. */
const longestTimer = 2 ** 31 - 1;

function isReply<K extends Value["kind"]>(reply: Value | Failure, kind: K): reply is Reply<K> {
  return reply.kind === kind;
}

/** Whether a rank only reports that a peer failed. */
function isEcho({ code }: Failure): boolean {
  return code === "ABORTED" || code === "CLOSED" || code === "STOPPED";
}
