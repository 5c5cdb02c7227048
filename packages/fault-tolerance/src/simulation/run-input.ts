/** A run to play, and what comes of it: the interface of the simulator's scale of weeks. */
import type { Seconds } from "@trireme/core";

import type { ControllerOptions } from "../recovery/options.ts";
import type { ControllerRecord } from "../recovery/record.ts";
import type { Incident } from "./incident.ts";
import type { Stretch } from "./progress.ts";
import { RunPlay } from "./run-play.ts";

/** Steps whose time depends on who trains and when: slow hosts, clocks, links that are down. */
export interface Pace {
  /** Time of one step of these members, by rank, as of a time; Infinity while training stands still. */
  step(members: readonly number[], at: Seconds): Seconds;
  /** When it may be another after a time, the members being the same; Infinity for never. */
  next(after: Seconds): Seconds;
}

/** A generation that is about to load: who it is, and who trained before. */
export interface Restart {
  readonly at: Seconds;
  readonly record: ControllerRecord;
  /** Members of the last generation by rank; none at first. */
  readonly before: readonly number[];
}

export interface RunTimes {
  /** Between two reports of a host; at most half of the controller's deadline. */
  readonly heartbeat: Seconds;
  /**
   * Of one step, of one on so many hosts, or at a pace that changes. A save must take longer to come
   * than a heartbeat.
   */
  readonly step: Seconds | ((members: number) => Seconds) | Pace;
  readonly checkpoint: {
    /** Steps from a save to the next. */
    readonly every: number;
    /** How long a save blocks training. */
    readonly write: Seconds;
    /** How much later it is durable. */
    readonly durable: Seconds;
  };
  /** From a member's order to halt until it has left, self-checks included. */
  readonly leave: Seconds;
  /** From the last member's order to train until the first step: groups, program, state. */
  readonly start: Seconds | ((restart: Restart) => Seconds);
  /** From an eviction until the host is handed back as a standby; Infinity for never. */
  readonly repair: Seconds;
}

/** A decision of the controller: its record from then on. Steps committed alone are none. */
export interface RunDecision {
  readonly at: Seconds;
  readonly record: ControllerRecord;
}

export interface RunInput {
  readonly options: ControllerOptions;
  readonly times: RunTimes;
  /** In order of time; taken one by one as the run comes to them. */
  readonly incidents: Iterable<Incident>;
  readonly horizon: Seconds;
  /** Told of each decision as it is made. */
  readonly on?: (decision: RunDecision) => void;
  /** "elided" (default) plays no heartbeat of a host that is well; "full" plays every one. */
  readonly transport?: "elided" | "full";
}

/** One generation: from the order to train until it was halted. */
export interface GenerationSpan {
  readonly generation: number;
  /** Hosts. */
  readonly members: number;
  readonly ordered: Seconds;
  /** When its first step began; `ended` where it came to none. */
  readonly began: Seconds;
  /** When an incident stopped it, noticed or not; `ended` where none did. */
  readonly stopped: Seconds;
  readonly ended: Seconds;
  /** The first step to train, the last one done, and the last one committed when it ended. */
  readonly step: number;
  readonly done: number;
  readonly committed: number;
  /** The last step that stayed committed to the end of the run; below `step` where none did. */
  readonly kept: number;
  /** Time of the steps that did. */
  readonly productive: Seconds;
  /** How long saves blocked training. */
  readonly saving: Seconds;
  /** Its parts by the time of a step; one unless the pace changed. */
  readonly stretches: readonly Stretch[];
}

export interface RunSummary {
  readonly record: ControllerRecord;
  /** The horizon, or when the run stopped. */
  readonly end: Seconds;
  /** Time of the steps that stayed committed. */
  readonly productive: Seconds;
  /** Its share of the time. */
  readonly ettr: number;
  readonly spans: readonly GenerationSpan[];
}

/**
 * Plays a run to its horizon, or until the controller stops it.
 * @throws TriremeError "RUN_INPUT" for times that do not fit, "RUN_INCIDENTS" out of order.
 */
export function playRun(input: RunInput): RunSummary {
  return new RunPlay(input).run();
}
