/** What a run that can be played must hold to. */
import { type Seconds, TriremeError } from "@trireme/core";

import type { RunInput } from "./run-input.ts";

/** @throws TriremeError "RUN_INPUT" with the value and the rule. */
export function checkRun({ options, horizon, times }: RunInput): void {
  const { heartbeat, leave, start, repair, checkpoint } = times;
  const refuse = (message: string): never => {
    throw new TriremeError("RUN_INPUT", message);
  };
  if (!(heartbeat > 0 && 2 * heartbeat <= options.deadline)) {
    refuse(
      `heartbeat = ${heartbeat} s must be above 0 and at most half of the deadline of ${options.deadline} s`,
    );
  }
  if (options.stall !== undefined && options.stall < Infinity) {
    refuse(`stall = ${options.stall} s: a run is told of hangs by incidents; leave it out`);
  }
  if (!(horizon >= 0 && horizon < Infinity))
    refuse(`horizon = ${horizon} s must be 0 or more, and finite`);
  for (const [name, value] of Object.entries({
    leave,
    ...(typeof start === "number" ? { start } : {}),
    repair,
    write: checkpoint.write,
    durable: checkpoint.durable,
  })) {
    if (!(value >= 0)) refuse(`${name} = ${value} s must be 0 or more`);
  }
  if (!Number.isSafeInteger(checkpoint.every) || checkpoint.every < 1) {
    refuse(`checkpoint.every = ${checkpoint.every} must be a whole number of steps, 1 or more`);
  }
  const shortest = stepTime(times.step, options.hosts, 0);
  if (!(shortest * checkpoint.every >= heartbeat)) {
    refuse(
      `saves every ${shortest * checkpoint.every} s, but hosts report every ${heartbeat} s: save less often`,
    );
  }
}

/**
 * Time of a step of these hosts, by rank.
 * @throws TriremeError "RUN_INPUT" where it is not above 0.
 */
export function stepTime(
  step: RunInput["times"]["step"],
  hosts: readonly number[],
  at: Seconds,
): Seconds {
  const time =
    typeof step === "number"
      ? step
      : typeof step === "function"
        ? step(hosts.length)
        : step.step(hosts, at);
  if (time > 0) return time;
  throw new TriremeError(
    "RUN_INPUT",
    `times.step = ${time} s of ${hosts.length} hosts at ${at} s must be above 0`,
  );
}
