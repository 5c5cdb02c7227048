/**
 * A worker's link to the agent that started it. The same in a process and in a thread, and absent
 * where the program was started by hand.
 */
import { Socket } from "node:net";
import { type MessagePort, parentPort } from "node:worker_threads";

/** What a worker tells its agent, and asks. */
export interface AgentLink {
  /** Step to train first: the state to restore is that of the step before. */
  readonly step: number;
  /**
   * Whether to train this step; false where the run ends before it, by a stop that all ranks agree on.
   * Ask before every step.
   */
  begin(step: number): Promise<boolean>;
  /** The state after this step is where a restart will find it. */
  saved(step: number): void;
  metrics(step: number, values: Readonly<Record<string, number>>): void;
  /**
   * What the agent cannot see by itself: of the host (evict it), of the software (restart in place),
   * or a loss that spiked or is not a number (roll back, skip batches).
   */
  fault(scope: "host" | "software" | "loss", reason: string): void;
}

/** The link, or undefined where no agent has started this worker. */
export function connectAgent(): AgentLink | undefined {
  const { TRIREME_CHANNEL: channel, TRIREME_STEP: step } = process.env;
  if (channel === undefined) return undefined;
  const first = Number(step);
  if (channel !== "thread") return processLink(first, Number(channel));
  return parentPort === null ? undefined : threadLink(first, parentPort);
}

type Send = (word: object) => void;

/** Questions are answered in their order. */
function link(
  step: number,
  port: { ref(): unknown; unref(): unknown },
  send: Send,
): { readonly agent: AgentLink; readonly answered: (go: boolean) => void } {
  const asked: ((go: boolean) => void)[] = [];
  const agent: AgentLink = {
    step,
    begin: (next) =>
      new Promise((resolve) => {
        asked.push(resolve);
        // Held while an answer is due; otherwise the link does not keep the worker alive.
        port.ref();
        send({ kind: "begin", step: next });
      }),
    saved: (next) => send({ kind: "saved", step: next }),
    metrics: (next, values) => send({ kind: "metrics", step: next, values }),
    fault: (scope, reason) => send({ kind: "fault", scope, reason }),
  };
  const answered = (go: boolean): void => {
    asked.shift()?.(go);
    if (asked.length === 0) port.unref();
  };
  return { agent, answered };
}

function processLink(step: number, descriptor: number): AgentLink {
  const socket = new Socket({ fd: descriptor, readable: true, writable: true });
  const send = (word: object): void => void socket.write(`${JSON.stringify(word)}\n`);
  const { agent, answered } = link(step, socket, send);
  let held = "";
  socket.setEncoding("utf8");
  socket.on("data", (piece: string) => {
    const lines = (held + piece).split("\n");
    held = lines.pop() ?? "";
    for (const line of lines) answered(isGo(JSON.parse(line)));
  });
  // Without its agent a worker has no one to train with.
  socket.on("error", () => process.exit(1));
  socket.on("end", () => process.exit(1));
  socket.unref();
  return agent;
}

function threadLink(step: number, port: MessagePort): AgentLink {
  const { agent, answered } = link(step, port, (word) => port.postMessage(word));
  port.on("message", (word: unknown) => answered(isGo(word)));
  port.unref();
  return agent;
}

function isGo(word: unknown): boolean {
  return typeof word === "object" && word !== null && "kind" in word && word.kind === "go";
}
