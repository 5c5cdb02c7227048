/** What happened while a run did not train: how each generation came up, and how it ended. */
import type { Seconds } from "@trireme/core";
import type { GenerationSpan } from "@trireme/fault-tolerance/simulation";
import { type RestartTimes, restartParts } from "./startup.ts";

/**
 * Before a generation trains: members hear of it (`join`), processes, groups, state, steps again.
 * After it: the fault is there unnoticed (`detect`), members leave and check themselves (`halt`), and
 * hosts are waited for (`wait`).
 */
export type OutagePhase =
  | "join"
  | "launch"
  | "groups"
  | "load"
  | "recompute"
  | "detect"
  | "halt"
  | "wait";

export interface Outage {
  readonly what: OutagePhase;
  /** Position of the generation that it belongs to. */
  readonly span: number;
  readonly start: Seconds;
  readonly end: Seconds;
}

/** A restart as it was begun: when all members had joined, and what it takes. */
export interface BegunRestart extends RestartTimes {
  readonly at: Seconds;
}

/**
 * All phases in order of time; what a new fault cuts short ends there. With the training of the
 * generations they fill the run without gap or overlap.
 * @param settle How long members take to leave: what of a halt is not waiting for hosts.
 */
export function outagesOf(
  spans: readonly GenerationSpan[],
  restarts: ReadonlyMap<number, BegunRestart>,
  settle: Seconds,
): readonly Outage[] {
  const all: Outage[] = [];
  const add = (what: OutagePhase, span: number, start: Seconds, end: Seconds): void => {
    if (end > start) all.push({ what, span, start, end });
  };
  for (const [i, { generation, ordered, began, stopped, ended }] of spans.entries()) {
    const up = Math.min(began, stopped);
    const restart = restarts.get(generation);
    let now = Math.min(restart?.at ?? up, up);
    add("join", i, ordered, now);
    for (const part of restartParts) {
      // The last part ends when training begins, whatever sums may round.
      const length = restart?.[part] ?? 0;
      const end = part === "recompute" ? up : Math.min(up, now + length);
      add(part, i, now, end);
      now = Math.max(now, end);
    }
    add("detect", i, stopped, ended);
    const next = spans[i + 1]?.ordered ?? ended;
    const left = Math.min(next, ended + settle);
    add("halt", i, ended, left);
    add("wait", i, left, next);
  }
  return all;
}
