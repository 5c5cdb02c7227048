/**
 * A worker's link to the agent that started it. The same in a process and in a thread, and absent
 * where the program was started by hand.
 */
import { Socket } from "node:net";
import { type MessagePort, getEnvironmentData, parentPort } from "node:worker_threads";
import { TriremeError } from "@trireme/core";
import type { RankFeed } from "@trireme/dataloader/node";
import { decodeFeed, feedVariable } from "../feed-text.ts";

/** Fields that some answer has. */
interface Answer {
  readonly kind: string;
  readonly state?: unknown;
  readonly reason?: string;
}

/** What a worker tells its agent, and asks. */
export interface AgentLink {
  /** Step to train first: the state to restore is that of the step before. */
  readonly step: number;
  /** Batches passed over so far: step s trains the batch that the loader counts as s - 1 + skip. */
  readonly skip: number;
  /** What this rank reads its batches from, by `rankBatches`; undefined where no loader feeds it. */
  readonly feed: RankFeed | undefined;
  /**
   * Whether to train this step; false where the run ends before it, by a stop that all ranks agree on.
   * Ask before every step.
   */
  begin(step: number): Promise<boolean>;
  /**
   * The state of the host's loader after a step that this rank has trained: JSON that belongs into the
   * checkpoint, and that the loader of the next generation starts from. Rejects with the reason where
   * there is none.
   */
  loaderState(step: number): Promise<unknown>;
  /** The state after this step is where a restart will find it. */
  saved(step: number): void;
  metrics(step: number, values: Readonly<Record<string, number>>): void;
  /**
   * What the agent cannot see by itself: of the host (evict it), of the software (restart in place),
   * or a loss that spiked or is not a number (roll back, skip batches).
   */
  fault(scope: "host" | "software" | "loss", reason: string): void;
}

/**
 * The link, or undefined where no agent has started this worker.
 * @throws TriremeError "FEED" where what stands in the environment is no feed.
 */
export function connectAgent(): AgentLink | undefined {
  const { TRIREME_CHANNEL: channel } = process.env;
  if (channel === undefined) return undefined;
  if (channel !== "thread") return processLink(Number(channel));
  return parentPort === null ? undefined : threadLink(parentPort);
}

type Send = (word: object) => void;

/** Questions are answered in their order. */
function link(
  feed: RankFeed | undefined,
  port: { ref(): unknown; unref(): unknown },
  send: Send,
): { readonly agent: AgentLink; readonly answered: (answer: unknown) => void } {
  const asked: ((answer: Answer) => void)[] = [];
  const ask = (word: object): Promise<Answer> =>
    new Promise((resolve) => {
      asked.push(resolve);
      // Held while an answer is due; otherwise the link does not keep the worker alive.
      port.ref();
      send(word);
    });
  const { TRIREME_STEP: first, TRIREME_SKIP: skip = 0 } = process.env;
  const agent: AgentLink = {
    step: Number(first),
    skip: Number(skip),
    feed,
    begin: async (step) => (await ask({ kind: "begin", step })).kind === "go",
    async loaderState(step) {
      const answer = await ask({ kind: "loader-state", step });
      if (answer.kind === "loader-state") return answer.state;
      throw new TriremeError("LOADER_STATE", answer.reason ?? "the agent knows of no loader");
    },
    saved: (step) => send({ kind: "saved", step }),
    metrics: (step, values) => send({ kind: "metrics", step, values }),
    fault: (scope, reason) => send({ kind: "fault", scope, reason }),
  };
  const answered = (answer: unknown): void => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the agent sends nothing else
    asked.shift()?.(answer as Answer);
    if (asked.length === 0) port.unref();
  };
  return { agent, answered };
}

function processLink(descriptor: number): AgentLink {
  const text = process.env[feedVariable];
  const feed = text === undefined ? undefined : decodeFeed(text);
  const socket = new Socket({ fd: descriptor, readable: true, writable: true });
  const send = (word: object): void => void socket.write(`${JSON.stringify(word)}\n`);
  const { agent, answered } = link(feed, socket, send);
  let held = "";
  socket.setEncoding("utf8");
  socket.on("data", (piece: string) => {
    const lines = (held + piece).split("\n");
    held = lines.pop() ?? "";
    for (const line of lines) answered(JSON.parse(line));
  });
  // Without its agent a worker has no one to train with.
  socket.on("error", () => process.exit(1));
  socket.on("end", () => process.exit(1));
  socket.unref();
  return agent;
}

function threadLink(port: MessagePort): AgentLink {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- set by worker-thread.ts alone
  const feed = getEnvironmentData(feedVariable) as RankFeed | undefined;
  const { agent, answered } = link(feed, port, (word) => port.postMessage(word));
  port.on("message", answered);
  port.unref();
  return agent;
}
