/** Starting the driver of a run: what it is told, and what can be asked of it. */
import { TriremeError, type Seconds } from "@trireme/core";
import { type DriverPolicy, DriverMachine } from "../../driver/driver-machine.ts";
import type { Journal } from "../../driver/journal.ts";
import type { Endpoint } from "../../driver/launch.ts";
import type { RunEnd } from "../../driver/message.ts";
import { checkRunName, checkTimes } from "./check-options.ts";
import { type Clock, monotonicClock } from "./clock.ts";
import type { DriverEvent } from "./driver-event.ts";
import type { ListenOptions } from "./listen.ts";
import { RunDriver } from "./run-driver.ts";
import { type Security, checkSecurity } from "./security.ts";

export interface DriverOptions extends DriverPolicy {
  /** Name of the run: agents of another are refused. */
  readonly run: string;
  readonly journal: Journal;
  readonly security: Security;
  /** Loopback and any free port by default. */
  readonly listen?: ListenOptions;
  /** Time between two reports of an agent; default a fifth of `deadline`. */
  readonly heartbeat?: Seconds;
  /** Greatest message taken from an agent, in bytes; default 1 MiB. */
  readonly messageLimit?: number;
  /** Time for the agents to fetch the end of the run; default 30 s. */
  readonly endDeadline?: Seconds;
  readonly on?: (event: DriverEvent) => void;
  /** Gives up waiting to lead. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** How a run ended, and who could not be told. */
export interface DriverResult extends RunEnd {
  /** Hosts that have not fetched the end within the deadline. */
  readonly unreached: readonly number[];
}

export interface Driver {
  /** Where it listens. */
  readonly endpoint: Endpoint;
  readonly term: number;
  /** Rejects when this driver can no longer lead: another takes over. */
  readonly result: Promise<DriverResult>;
  /** Asks for a stop after one step that all ranks agree on. */
  stop(): void;
  /** Evicts hosts on evidence from elsewhere: stack traces, a straggler, an operator. */
  suspect(hosts: readonly number[], reason: string): void;
  /** Makes a repaired or new host a standby; its agent may join from now on. */
  admit(host: number): void;
  /** Asks for another version of the code: at once where urgent, else at the next interruption. */
  update(version: number, options?: { readonly urgent?: boolean }): void;
  /** Steps down without ending the run: another driver may take over. */
  close(): Promise<void>;
}

/**
 * Waits until this process leads, and drives the run.
 * @throws TriremeError "SECURITY", "DRIVER", "CONTROLLER" for options that cannot work; "LISTEN",
 * "JOURNAL" where the system refuses.
 */
export async function startDriver(options: DriverOptions): Promise<Driver> {
  checkSecurity(options.security);
  const { clock = monotonicClock, deadline, heartbeat = deadline / 5 } = options;
  if (!(heartbeat > 0) || 2 * heartbeat > deadline) {
    throw new TriremeError(
      "DRIVER",
      `heartbeat = ${heartbeat} s must be above 0 and at most half of deadline = ${deadline} s: one lost report must not evict a host`,
    );
  }
  // Bad options are refused before the wait to lead, not after.
  checkRunName("DRIVER", options.run);
  checkTimes("DRIVER", "pause", { endDeadline: options.endDeadline });
  const { messageLimit } = options;
  if (messageLimit !== undefined && !(Number.isSafeInteger(messageLimit) && messageLimit >= 1024)) {
    throw new TriremeError(
      "DRIVER",
      `messageLimit = ${messageLimit} must be a whole number of at least 1024 bytes; 1048576 is usual`,
    );
  }
  void new DriverMachine(options, clock.now());
  const leadership = await options.journal.lead(options.signal);
  try {
    const machine = new DriverMachine(options, clock.now(), leadership.record);
    const driver = new RunDriver({ ...options, heartbeat, clock }, leadership, machine);
    await driver.open();
    return driver;
  } catch (error) {
    await leadership.release();
    throw error;
  }
}
