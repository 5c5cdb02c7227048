/** Starting the agent of a host: what it is told, and what it tells. */
import { TriremeError, type Seconds } from "@trireme/core";
import type { HostLoaderOptions } from "@trireme/dataloader/node";
import type { Endpoint, Launch } from "../../driver/launch.ts";
import type { Failure, RunEnd } from "../../driver/message.ts";
import { checkRunName, checkTimes } from "./check-options.ts";
import type { Clock } from "./clock.ts";
import { HostAgent } from "./host-agent.ts";
import type { WorkerCommand } from "./running-worker.ts";
import { type Security, checkSecurity } from "./security.ts";

export interface AgentOptions {
  /** Name of the run: agents and drivers of another are refused. */
  readonly run: string;
  /** Index of this host, from 0; those after the members stand by. */
  readonly host: number;
  /** Every driver that may lead. */
  readonly drivers: readonly Endpoint[];
  readonly security: Security;
  /** Workers to start. */
  readonly ranks: number;
  readonly worker: WorkerCommand;
  /**
   * The data loader of this host: called for each generation, for what to start it with. Its ranks are
   * this host's unless they are given, its actors such that the workers can read from it. Workers start
   * once its sources are open; it goes with the generation, and its failure is one of the software.
   */
  readonly loader?: (start: GenerationStart) => HostLoaderOptions | Promise<HostLoaderOptions>;
  /** Where other hosts reach this one, for MASTER_ADDR; default 127.0.0.1. */
  readonly address?: string;
  /** Time without a driver after which the workers are taken down; default 600 s. */
  readonly lostDeadline?: Seconds;
  /** Silence of a worker, of one that has spoken before, that is a stall; never by default. */
  readonly stallDeadline?: Seconds;
  /** Time between SIGTERM and SIGKILL for workers that are taken down; default 5 s. */
  readonly grace?: Seconds;
  /** Self-check of the host, where the driver asks for one: a reason why it is unfit, or undefined. */
  readonly check?: () => Promise<string | undefined>;
  readonly on?: (event: AgentEvent) => void;
  readonly clock?: Clock;
}

/** A generation that is about to start on a host. */
export interface GenerationStart {
  readonly launch: Launch;
  /**
   * Step to train first. The loader's state to go on from is the one saved after the step before
   * (`loaderState` of the worker's link); none for step 1.
   */
  readonly step: number;
  /** Batches passed over so far: step s trains the batch that the loader counts as s - 1 + skip. */
  readonly skip: number;
}

/** What an agent tells where it runs. */
export type AgentEvent =
  | { readonly kind: "connect"; readonly driver: Endpoint; readonly term: number }
  | { readonly kind: "disconnect"; readonly reason: string }
  | { readonly kind: "start"; readonly launch: Launch; readonly step: number }
  | { readonly kind: "leave"; readonly generation: number }
  | { readonly kind: "failure"; readonly failure: Failure }
  | {
      readonly kind: "log";
      readonly rank: number;
      readonly stream: "stdout" | "stderr";
      readonly line: string;
    };

export interface Agent {
  /** How the run ended for this host; rejects where the agent itself failed. No worker lives by then. */
  readonly result: Promise<RunEnd>;
  /** Takes the workers down and goes; the driver will miss this host. */
  close(): Promise<void>;
}

/**
 * Starts an agent.
 * @throws TriremeError "SECURITY" or "AGENT" for options that cannot work.
 */
export function startAgent(options: AgentOptions): Agent {
  checkSecurity(options.security);
  const { run, host, ranks, drivers, lostDeadline, stallDeadline, grace } = options;
  checkRunName("AGENT", run);
  checkTimes("AGENT", "deadline", { lostDeadline, stallDeadline });
  checkTimes("AGENT", "pause", { grace });
  if (!Number.isSafeInteger(host) || host < 0 || !Number.isSafeInteger(ranks) || ranks < 1) {
    throw new TriremeError(
      "AGENT",
      `host = ${host} must be a whole number of at least 0, and ranks = ${ranks} of at least 1`,
    );
  }
  if (drivers.length === 0)
    throw new TriremeError("AGENT", "an agent needs a driver to connect to");
  for (const { address, port } of drivers) {
    if (Number.isInteger(port) && port >= 1 && port <= 65_535) continue;
    throw new TriremeError("AGENT", `driver at ${address}:${port}: a port is 1 to 65535`);
  }
  const agent = new HostAgent(options);
  const result = agent.live();
  return {
    result,
    close: async () => {
      agent.end({ ok: false, reason: `the agent of host ${host} was closed`, step: 0 });
      await result.catch(() => undefined);
    },
  };
}
