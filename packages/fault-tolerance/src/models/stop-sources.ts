/** Sources of faults that stop hosts: from published cause tables, and whole domains at once. */
import { TriremeError, days, type Seconds } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import type { Cause, CausePart } from "./causes.ts";
import { unitsOf } from "./component.ts";
import type { FaultSource } from "./source.ts";

/** Parts of a cause table that a source is made for, in the order of the sources. */
const parts: readonly CausePart[] = ["accelerator", "nic", "host", "job"];

/**
 * One memoryless source per component class of a cause table, together `failuresPerHostDay` times
 * the hosts: each class has its share of the counts, spread evenly over its units.
 * @throws TriremeError "FAULTS" when the rate is not above 0.
 */
export function stopSources(
  cluster: Cluster,
  causes: readonly Cause[],
  failuresPerHostDay: number,
): FaultSource[] {
  if (!(failuresPerHostDay > 0 && failuresPerHostDay < Infinity)) {
    throw new TriremeError(
      "FAULTS",
      `${failuresPerHostDay} failures per host-day: use a rate above 0, such as 0.0065 (RSC-1)`,
    );
  }
  const total = causes.reduce((sum, each) => sum + each.count, 0);
  const perDay = cluster.hosts * failuresPerHostDay;
  return parts.flatMap((component) => {
    const mine = causes.filter((each) => each.part === component);
    const share = mine.reduce((sum, each) => sum + each.count, 0) / total;
    if (!(share > 0)) return [];
    const mean = (days(1) * unitsOf(cluster, component).count) / (perDay * share);
    const effect = { kind: "stop", causes: mine } as const;
    return [{ name: component, component, law: { kind: "exponential", mean }, effect }];
  });
}

/**
 * Whole domains that stop at once: a switch takes its ToR set, a breaker its power feed.
 * @param mean Time between outages of one such domain.
 */
export function outageSource(
  component: "rack" | "tor-set" | "pod" | "power-feed",
  mean: Seconds,
): FaultSource {
  const kind = component === "power-feed" ? "host" : "network";
  const names = {
    rack: "rack",
    "tor-set": "ToR switch",
    pod: "pod switch",
    "power-feed": "power feed",
  };
  return {
    name: `${component} outage`,
    component,
    law: { kind: "exponential", mean },
    effect: {
      kind: "stop",
      causes: [{ name: names[component], count: 1, class: kind, part: "host" }],
    },
  };
}
