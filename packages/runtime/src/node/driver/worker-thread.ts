/** A worker that is a thread of the agent's process. */
import { Worker, setEnvironmentData } from "node:worker_threads";
import type { RankFeed } from "@trireme/dataloader/node";
import { feedVariable } from "../feed-text.ts";
import { LineReader } from "./line-reader.ts";
import {
  type RunningWorker,
  type WorkerCommand,
  type WorkerEvents,
  type WorkerOutcome,
  longestLine,
} from "./running-worker.ts";
import { channelVariable } from "./worker-word.ts";

/** Starts a thread. An error that it does not catch is its last line on stderr, and code 1. */
export function startWorkerThread(
  command: WorkerCommand & { kind: "thread" },
  environment: Readonly<Record<string, string>>,
  feed: RankFeed | undefined,
  events: WorkerEvents,
): RunningWorker {
  // As a variable of its environment, but shared memory cannot be one: the thread takes a copy of what
  // is set when it is made.
  setEnvironmentData(feedVariable, feed);
  const worker = new Worker(command.file, {
    env: {
      ...process.env,
      ...command.environment,
      ...environment,
      [channelVariable]: "thread",
    },
    workerData: command.data,
    stdout: true,
    stderr: true,
  });
  setEnvironmentData(feedVariable, undefined);
  const stdout = new LineReader(longestLine, (line) => events.line("stdout", line));
  const stderr = new LineReader(longestLine, (line) => events.line("stderr", line));
  worker.stdout.on("data", (piece: Buffer) => stdout.push(piece));
  worker.stderr.on("data", (piece: Buffer) => stderr.push(piece));
  worker.on("message", events.word);
  worker.on("error", (error) => {
    stderr.push(
      Buffer.from(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`),
    );
  });
  const ended = new Promise<void>((resolve) => {
    worker.once("exit", (code) => {
      const outcome: WorkerOutcome = { kind: "exit", code };
      // Its output is handed over after its exit.
      setImmediate(() => {
        stdout.end();
        stderr.end();
        events.ended(outcome);
        resolve();
      });
    });
  });
  return {
    pid: undefined,
    answer: (word) => worker.postMessage(word),
    askToEnd: () => undefined,
    async terminate() {
      await worker.terminate();
      await ended;
    },
  };
}
