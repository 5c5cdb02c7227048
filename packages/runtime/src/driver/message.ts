/**
 * What agents and driver say to each other. An agent's report is its heartbeat and has all that the
 * driver needs of it; the answer has all that the agent needs: a lost one costs a heartbeat, no more.
 */
import type { Seconds } from "@trireme/core";
import type { Order } from "@trireme/fault-tolerance";
import type { Endpoint, Launch } from "./launch.ts";

/** Version of the messages; both sides must have the same. */
export const protocolVersion = 1;

/** Why a rank no longer trains. */
export type Failure =
  | { readonly kind: "exit"; readonly rank: number; readonly code: number }
  | { readonly kind: "signal"; readonly rank: number; readonly signal: string }
  /** It could not be started at all. */
  | { readonly kind: "start"; readonly rank: number; readonly reason: string }
  /** It lives, but has said nothing for so long; `step` is the last that it began. */
  | {
      readonly kind: "stall";
      readonly rank: number;
      readonly step: number;
      readonly seconds: Seconds;
    }
  /** Nobody has driven its host for so long, so the agent took its workers down. */
  | { readonly kind: "lease"; readonly rank: number; readonly seconds: Seconds }
  /** The worker's own word: of its host (ECC, a lost device), its program, or the loss of its last step. */
  | {
      readonly kind: "declared";
      readonly rank: number;
      readonly scope: "host" | "software" | "loss";
      readonly reason: string;
    };

/** First message of an agent on every connection. */
export interface Join {
  readonly kind: "join";
  /** Index of the host: members come first, standbys after them. */
  readonly host: number;
  /** Drawn anew by every agent process: another one under the same index has lost its workers. */
  readonly incarnation: string;
  /** Workers the host starts. */
  readonly ranks: number;
  readonly endpoint: Endpoint;
}

/** What an agent says every heartbeat, and at once when something happened. */
export interface AgentReport {
  readonly kind: "report";
  readonly host: number;
  readonly incarnation: string;
  /** The greatest generation it has left or trains in. */
  readonly generation: number;
  /** Whether it has started its workers in that generation, so that it needs no launch. */
  readonly begun: boolean;
  /** The last step that all its ranks have finished; the one before the first until then. */
  readonly done: number;
  /** The last step whose state all its ranks have saved: where a restart would go on from. */
  readonly saved: number;
  readonly failures: readonly Failure[];
  /** Every worker has ended by itself, with code 0. */
  readonly finished: boolean;
  /** A free port for a master of the next generation. */
  readonly endpoint: Endpoint;
  /** While a stop is agreed on: no rank of this host begins a step beyond this one. */
  readonly bound?: number;
}

/** Lines a worker printed. */
export interface LogMessage {
  readonly kind: "log";
  readonly host: number;
  readonly generation: number;
  readonly rank: number;
  readonly stream: "stdout" | "stderr";
  readonly lines: readonly string[];
  /** Lines lost before these because the connection could not take them. */
  readonly dropped: number;
}

/** Numbers a worker measured at a step. */
export interface MetricsMessage {
  readonly kind: "metrics";
  readonly host: number;
  readonly generation: number;
  readonly rank: number;
  readonly step: number;
  readonly values: Readonly<Record<string, number>>;
}

export type AgentMessage = Join | AgentReport | LogMessage | MetricsMessage;

/** A stop in the making: say how far you have let your ranks go, or end after a step. */
export type StopOrder =
  | { readonly kind: "hold" }
  | { readonly kind: "after"; readonly step: number };

/** How a run ended. */
export interface RunEnd {
  readonly ok: boolean;
  readonly reason: string;
  /** The last step whose state every member has saved. */
  readonly step: number;
}

/** What the driver answers to a report. */
export interface Answer {
  readonly kind: "answer";
  readonly order: Order;
  /** With an order to train, where the agent has not begun. */
  readonly launch?: Launch;
  readonly stop?: StopOrder;
  /** The run is over: take the workers down and go. */
  readonly end?: RunEnd;
}

/** What the driver answers to a join. */
export interface Welcome {
  readonly kind: "welcome";
  /** Term of the driver; an agent takes orders of no smaller one than the greatest it has met. */
  readonly term: number;
  readonly heartbeat: Seconds;
  /** Time without a driver after which an agent takes its workers down, by the driver's clock. */
  readonly lease?: Seconds;
}

export type DriverMessage =
  | Welcome
  | Answer
  /** Something has changed: report now. */
  | { readonly kind: "ask" }
  /** Go, and do not come back. */
  | { readonly kind: "refuse"; readonly reason: string };

/** A failure as a phrase of a log line. */
export function describeFailure(failure: Failure): string {
  const { rank } = failure;
  switch (failure.kind) {
    case "exit":
      return `rank ${rank} exited with code ${failure.code}`;
    case "signal":
      return `rank ${rank} was killed by ${failure.signal}`;
    case "start":
      return `rank ${rank} could not start: ${failure.reason}`;
    case "stall":
      return `rank ${rank} has been silent for ${failure.seconds.toFixed(1)} s since it began step ${failure.step}`;
    case "lease":
      return `rank ${rank} was taken down after a lease of ${failure.seconds} s without a driver`;
    case "declared":
      break;
  }
  return `rank ${rank} declared a ${failure.scope} fault: ${failure.reason}`;
}
