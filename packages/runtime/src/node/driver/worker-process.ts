/** A worker that is a process: any program. It leads a process group, so that all it starts can be found. */
import { spawn } from "node:child_process";
import { Socket } from "node:net";
import type { RankFeed } from "@trireme/dataloader/node";
import { encodeFeed, feedVariable } from "../feed-text.ts";
import { LineReader } from "./line-reader.ts";
import {
  type RunningWorker,
  type WorkerCommand,
  type WorkerEvents,
  type WorkerOutcome,
  longestLine,
} from "./running-worker.ts";
import { channelVariable, longestWord } from "./worker-word.ts";

const descriptor = 3;
/** A grandchild may hold the output open long after the worker is gone: what comes later is lost. */
const lateOutput = 200;

/** Starts a process; a program that is not there ends at once with the outcome "start". */
export function startWorkerProcess(
  command: WorkerCommand & { kind: "process" },
  environment: Readonly<Record<string, string>>,
  feed: RankFeed | undefined,
  events: WorkerEvents,
): RunningWorker {
  const child = spawn(command.command, [...(command.arguments ?? [])], {
    env: {
      ...process.env,
      ...command.environment,
      ...environment,
      ...(feed === undefined ? {} : { [feedVariable]: encodeFeed(feed) }),
      [channelVariable]: String(descriptor),
    },
    ...(command.directory === undefined ? {} : { cwd: command.directory }),
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const stdout = new LineReader(longestLine, (line) => events.line("stdout", line));
  const stderr = new LineReader(longestLine, (line) => events.line("stderr", line));
  child.stdout?.on("data", (piece: Buffer) => stdout.push(piece));
  child.stderr?.on("data", (piece: Buffer) => stderr.push(piece));

  const words = new LineReader(longestWord, (line) => events.word(parse(line)));
  const channel = child.stdio[descriptor];
  if (channel instanceof Socket) {
    channel.on("data", (piece: Buffer) => words.push(piece));
    // A worker that closes its end, or dies with an answer under way, is seen by its exit.
    channel.on("error", () => undefined);
  }

  let over = false;
  const end = (outcome: WorkerOutcome): void => {
    if (over) return;
    over = true;
    stdout.end();
    stderr.end();
    events.ended(outcome);
  };
  child.once("error", (error) => {
    if (child.pid === undefined) end({ kind: "start", reason: error.message });
  });
  child.once("exit", (code, signal) => {
    const outcome: WorkerOutcome =
      signal === null ? { kind: "exit", code: code ?? 0 } : { kind: "signal", signal };
    const timer = setTimeout(() => end(outcome), lateOutput);
    child.once("close", () => {
      clearTimeout(timer);
      end(outcome);
    });
  });

  return {
    pid: child.pid,
    answer(word) {
      if (channel instanceof Socket) channel.write(`${JSON.stringify(word)}\n`);
    },
    askToEnd: () => void child.kill("SIGTERM"),
    terminate: () => Promise.resolve(),
  };
}

/** NaN and infinities as Python's `json` writes them, which no other reader takes. */
const bareNumbers = /([:,[]\s*)(?:NaN|-?Infinity)(?=\s*[,}\]])/g;

/** What is not JSON is handed on as the text it is, and refused with the rest. */
function parse(line: string): unknown {
  for (const text of [line, line.replaceAll(bareNumbers, "$1null")]) {
    try {
      return JSON.parse(text);
    } catch {
      // The next reading, or none.
    }
  }
  return line;
}
