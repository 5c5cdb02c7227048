/** A run of agents and a driver in this process, with real workers in processes of their own. */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Endpoint } from "@trireme/runtime/driver";
import {
  type Agent,
  type AgentEvent,
  type AgentOptions,
  type Driver,
  type DriverEvent,
  type DriverOptions,
  fileJournal,
  startAgent,
  startDriver,
} from "@trireme/runtime/node";

export const workerFile: string = fileURLToPath(new URL("worker.mjs", import.meta.url));
export const token = "a token that only tests have";

export interface Job {
  readonly run: string;
  readonly directory: string;
  readonly events: DriverEvent[];
  readonly agentEvents: AgentEvent[];
  driver(options?: Partial<DriverOptions>): Promise<Driver>;
  agent(host: number, driver: Endpoint, options?: Partial<AgentOptions>): Agent;
  /** Tells the worker of a rank what to do at its next step. */
  command(what: string, rank: number): void;
  /** Steps that workers finished, as [generation, rank, step]. */
  steps(): readonly (readonly number[])[];
  /** Resolves at the next event that fits, past or to come; names what it waited for. */
  until(fits: (event: DriverEvent) => boolean, what: string): Promise<DriverEvent>;
  /** Processes that are marked as this run's. */
  alive(): readonly number[];
  clear(): void;
}

let jobs = 0;

export function newJob(worker: { readonly steps?: number; readonly stepMs?: number } = {}): Job {
  const directory = mkdtempSync(join(tmpdir(), "trireme-driver-"));
  const commands = join(directory, "commands");
  mkdirSync(commands);
  const log = join(directory, "steps");
  writeFileSync(log, "");
  const run = `test-${process.pid}-${jobs++}`;
  const events: DriverEvent[] = [];
  const agentEvents: AgentEvent[] = [];
  const listeners = new Set<(event: DriverEvent) => void>();
  const environment = {
    STEPS: String(worker.steps ?? 10),
    STEP_MS: String(worker.stepMs ?? 10),
    LOG: log,
    COMMANDS: commands,
  };
  return {
    run,
    directory,
    events,
    agentEvents,
    driver: (options = {}) =>
      startDriver({
        run,
        hosts: 2,
        deadline: 5,
        heartbeat: 0.1,
        joinDeadline: 10,
        journal: fileJournal(join(directory, "journal")),
        security: { token },
        on: (event) => {
          events.push(event);
          for (const listener of listeners) listener(event);
        },
        ...options,
      }),
    agent: (host, driver, options = {}) =>
      startAgent({
        run,
        host,
        drivers: [driver],
        security: { token },
        ranks: 1,
        worker: {
          kind: "process",
          command: process.execPath,
          arguments: [workerFile],
          environment,
        },
        grace: 0,
        on: (event) => agentEvents.push(event),
        ...options,
      }),
    command: (what, rank) => writeFileSync(join(commands, `${what}-${rank}`), ""),
    steps: () =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.split(" ").map(Number)),
    until: (fits, what) =>
      new Promise((resolve, reject) => {
        const past = events.find(fits);
        if (past !== undefined) {
          resolve(past);
          return;
        }
        const timer = setTimeout(() => {
          listeners.delete(listener);
          reject(
            new Error(`waited 15 s for ${what}; events: ${JSON.stringify(events).slice(-2000)}`),
          );
        }, 15_000);
        const listener = (event: DriverEvent): void => {
          if (!fits(event)) return;
          clearTimeout(timer);
          listeners.delete(listener);
          resolve(event);
        };
        listeners.add(listener);
      }),
    alive: () =>
      readdirSync("/proc")
        .map(Number)
        .filter(
          (pid) => Number.isInteger(pid) && environmentOf(pid).includes(`TRIREME_TREE=${run}/`),
        ),
    clear: () => rmSync(directory, { recursive: true, force: true }),
  };
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}
