/** A run whose drivers and agents are processes of their own, to be killed at will. */
import { join } from "node:path";
import { expect } from "vitest";
import { type Child, startChild } from "./child.ts";
import { type Job, newJob, token, workerFile } from "./job.ts";

export interface Programs {
  readonly driver: string;
  readonly agent: string;
}

export interface Cast {
  readonly job: Job;
  driver(port: number, more?: object): Child;
  agent(host: number, ports: readonly number[], steps: number): Child;
  /** Kills what still runs, and sees that nothing of the run is left. */
  end(): Promise<void>;
}

export function newCast(programs: Programs): Cast {
  const job = newJob();
  const children: Child[] = [];
  const start = (file: string, options: object): Child => {
    const child = startChild(file, { run: job.run, security: { token }, ...options });
    children.push(child);
    return child;
  };
  return {
    job,
    driver: (port, more = {}) =>
      start(programs.driver, {
        hosts: 2,
        deadline: 20,
        heartbeat: 0.1,
        joinDeadline: 60,
        journal: join(job.directory, "journal"),
        listen: { port },
        ...more,
      }),
    agent: (host, ports, steps) =>
      start(programs.agent, {
        host,
        drivers: ports.map((port) => ({ address: "127.0.0.1", port })),
        ranks: 1,
        worker: {
          kind: "process",
          command: process.execPath,
          arguments: [workerFile],
          environment: {
            STEPS: String(steps),
            STEP_MS: "15",
            LOG: join(job.directory, "steps"),
            COMMANDS: join(job.directory, "commands"),
          },
        },
        grace: 0,
      }),
    async end() {
      for (const {
        process: { exitCode, signalCode },
        kill,
      } of children) {
        if (exitCode === null && signalCode === null) await kill();
      }
      // Guards need a moment after the death of their agents.
      await expect.poll(() => job.alive(), { timeout: 5000 }).toEqual([]);
      job.clear();
    },
  };
}

export async function portOf(driver: Child): Promise<number> {
  const lead = await driver.until(({ kind }) => kind === "lead", "a driver to lead");
  return (lead["endpoint"] as { port: number }).port;
}

/** What a run that lost a host's worker came to when its driver died at a write. */
export async function dieAtWrite(
  programs: Programs,
  port: number,
  dies: { readonly write: number; readonly when: "before" | "after" },
): Promise<{ readonly died: boolean; readonly savedTwice: boolean; readonly result: unknown }> {
  const cast = newCast(programs);
  try {
    const first = cast.driver(port, { dies });
    await portOf(first);
    const second = cast.driver(port);
    // Rank 1 is lost at its first step: the history has a recovery in it.
    cast.job.command("exit", 1);
    for (const host of [0, 1]) cast.agent(host, [port], 12);
    // The one that dies is never heard of again.
    const end = await Promise.any(
      [first, second].map((driver) => driver.until(({ kind }) => kind === "result", "the end")),
    );
    const told = [...first.said, ...second.said];
    let saved = 0;
    let savedTwice = false;
    for (const { kind, step } of told) {
      if (kind === "progress") saved = Number(step);
      if (kind === "launch" && Number(step) <= saved) savedTwice = true;
    }
    return { died: first.process.signalCode === "SIGKILL", savedTwice, result: end["result"] };
  } finally {
    await cast.end();
  }
}
