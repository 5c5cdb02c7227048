/** What befalls a run, at the grain of weeks: what shows of it, and when it is noticed. */
import type { Seconds } from "@trireme/core";

import type { Fault } from "../models/fault-stream.ts";

export type Symptom =
  /** The hosts fall silent; the controller's deadline notices. */
  | "silence"
  /** Training stops; the hosts' agents have evidence against them after `detect`. */
  | "evidence"
  /** Training stops; a restart in place cures it; noticed after `detect`. */
  | "software"
  /** Training stops (a hang) and an analysis names the hosts after `detect`, good ones included. */
  | "named"
  /** Training goes on, slowly or wrongly, until the hosts are named after `detect`. */
  | "degraded"
  /** The loss spikes, which is seen after `detect`: back, and past the batches. */
  | "loss"
  /** People change the code: at the next interruption, or at once where `urgent`. */
  | "update";

export interface Incident {
  readonly time: Seconds;
  readonly symptom: Symptom;
  /** Hosts it strikes or names; none where it is the job's own. */
  readonly hosts: readonly number[];
  /** From the incident to its report; 0 by default, of no meaning for "silence" and "update". */
  readonly detect?: Seconds;
  readonly urgent?: boolean;
  /** For the record of evictions. */
  readonly cause?: string;
}

/**
 * The incident of a fault of the failure models: hosts that stop are reported by their agents or,
 * where several stop at once, fall silent (a switch, a power feed); jobs restart in place. Flaps
 * pass by themselves, and transient corruption of which nobody knows changes no decision: undefined.
 * @param detect How long it takes until a fault is noticed.
 */
export function incidentOf(fault: Fault, detect: (fault: Fault) => Seconds): Incident | undefined {
  const { time, hosts, effect } = fault;
  switch (effect.kind) {
    case "flap":
      return undefined;
    case "slow":
      return { time, symptom: "degraded", hosts, detect: detect(fault), cause: fault.source };
    case "corrupt":
      return effect.persistence === "transient"
        ? undefined
        : { time, symptom: "degraded", hosts, detect: detect(fault), cause: fault.source };
    case "stop": {
      const software = hosts.length === 0 || effect.cause.class === "software";
      const symptom = software ? "software" : hosts.length > 1 ? "silence" : "evidence";
      return { time, symptom, hosts, detect: detect(fault), cause: effect.cause.name };
    }
  }
}
