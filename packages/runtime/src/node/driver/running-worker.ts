/** One worker of a generation, whatever it runs in. */
import type { AgentWord } from "./worker-word.ts";

/** What an agent starts for each rank. */
export type WorkerCommand =
  | {
      readonly kind: "process";
      readonly command: string;
      readonly arguments?: readonly string[];
      /** Over the agent's own; under the variables of the rank. */
      readonly environment?: Readonly<Record<string, string>>;
      readonly directory?: string;
    }
  /** A thread of the agent's process: for ranks that share its memory. */
  | {
      readonly kind: "thread";
      readonly file: URL;
      readonly environment?: Readonly<Record<string, string>>;
      /** `workerData` of the thread. */
      readonly data?: unknown;
    };

/** How a worker ended by itself. */
export type WorkerOutcome =
  | { readonly kind: "exit"; readonly code: number }
  | { readonly kind: "signal"; readonly signal: string }
  | { readonly kind: "start"; readonly reason: string };

/** Whether a worker that was sent SIGTERM ended by it: by the signal, or by its own hand with 128 + 15. */
export function hasObeyed(outcome: WorkerOutcome): boolean {
  if (outcome.kind === "signal") return outcome.signal === "SIGTERM";
  return outcome.kind === "exit" && outcome.code === 143;
}

/** What a worker does, as its agent sees it. */
export interface WorkerEvents {
  /** Something it said; not checked yet. */
  readonly word: (value: unknown) => void;
  readonly line: (stream: "stdout" | "stderr", line: string) => void;
  /** Called once, after its last line. */
  readonly ended: (outcome: WorkerOutcome) => void;
}

export interface RunningWorker {
  /** Number of its process; undefined in a thread. */
  readonly pid: number | undefined;
  answer(word: AgentWord): void;
  /** Asks it to end by itself; of a thread nothing can be asked but through its words. */
  askToEnd(): void;
  /** Ends a thread. A process is killed with its tree. */
  terminate(): Promise<void>;
}

/** Characters kept of a line that a worker prints. */
export const longestLine: number = 1 << 14;
