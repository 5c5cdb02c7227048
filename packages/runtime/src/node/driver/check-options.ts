/** What driver and agents refuse of their options before they wait for anything. */
import { TriremeError, type Seconds } from "@trireme/core";

/** A hello has the name in it, and is of limited size. */
const longestName = 256;

/**
 * Refuses a name that no handshake can carry, or that could not stand in an environment.
 * @throws TriremeError `code`
 */
export function checkRunName(code: string, run: string): void {
  const bytes = Buffer.byteLength(run);
  if (bytes > 0 && bytes <= longestName && !/\p{Cc}/u.test(run)) return;
  const shown = JSON.stringify(run.length > 40 ? `${run.slice(0, 40)}…` : run);
  throw new TriremeError(
    code,
    `run = ${shown} has ${bytes} bytes; a name has 1 to ${longestName}, and no control characters`,
  );
}

/**
 * Refuses times that are none: a wait of NaN seconds would be over at once, or never.
 * @param rule "deadline": above 0, Infinity for never. "pause": 0 or more, and finite.
 * @throws TriremeError `code` with the name, the value and the rule.
 */
export function checkTimes(
  code: string,
  rule: "deadline" | "pause",
  times: Readonly<Record<string, Seconds | undefined>>,
): void {
  for (const [name, value] of Object.entries(times)) {
    if (value === undefined) continue;
    if (rule === "deadline" ? value > 0 : value >= 0 && value < Infinity) continue;
    const text = rule === "deadline" ? "above 0" : "0 or more, and finite";
    throw new TriremeError(code, `${name} = ${value} s must be ${text}`);
  }
}
