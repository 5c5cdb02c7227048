/** What befalls a run, from the failure models: incidents for the controller, and times of slowness. */
import { minutes, type Seconds } from "@trireme/core";
import { type Fault, type FaultSource, type Lemons, faultsUntil } from "@trireme/fault-tolerance";
import { type Incident, incidentOf } from "@trireme/fault-tolerance/simulation";
import type { Cluster } from "@trireme/topology";

/** A time in which hosts are slow, or in which training waits for a link. */
export interface Disturbance {
  readonly from: Seconds;
  readonly until: Seconds;
  readonly hosts: readonly number[];
  /** How much longer the hosts compute; Infinity while a link of theirs is down. */
  readonly factor: number;
}

export interface RunFaults {
  readonly incidents: readonly Incident[];
  readonly disturbances: readonly Disturbance[];
}

/** Changes of code by people. */
export interface Update {
  readonly time: Seconds;
  readonly urgent?: boolean;
}

export interface RunFaultOptions {
  readonly sources: readonly FaultSource[];
  readonly lemons?: Lemons;
  /** From a fault to its report; Infinity leaves a slow host be. `detectedAfter` by default. */
  readonly detect?: (fault: Fault) => Seconds;
  /**
   * The longest that a link may be down without an error: NCCL's retransmit timer and retries
   * (MegaScale, NSDI 2024, section 3.6); 30 s by default.
   */
  readonly flapTolerance?: Seconds;
  readonly updates?: readonly Update[];
}

/**
 * How long faults stay unnoticed: a minute for what reports an error (ByteRobust's localisation of
 * explicit failures begins after about 60 s), ten for slow hosts and wrong values, which must be
 * searched for (its hangs and losses of speed are called after 10 minutes).
 */
export function detectedAfter({ effect }: Fault): Seconds {
  return effect.kind === "stop" ? minutes(1) : minutes(10);
}

/** All that befalls a run up to its horizon, in order of time. */
export function runFaults(
  cluster: Cluster,
  o: RunFaultOptions,
  { seed, until }: { readonly seed: number; readonly until: Seconds },
): RunFaults {
  const { sources, lemons, detect = detectedAfter, flapTolerance = 30, updates = [] } = o;
  const incidents: Incident[] = updates
    .filter(({ time }) => time <= until)
    .map(({ time, urgent = false }) => ({ time, symptom: "update", hosts: [], urgent }));
  const disturbances: Disturbance[] = [];
  const options = { seed, until, ...(lemons === undefined ? {} : { lemons }) };
  for (const fault of faultsUntil(cluster, sources, options)) {
    const { time, hosts, effect, source } = fault;
    if (effect.kind === "flap") {
      // A link is down for both of its ends: training waits as a whole.
      const { duration } = effect;
      const back = time + Math.min(duration, flapTolerance);
      disturbances.push({ from: time, until: back, hosts, factor: Infinity });
      if (duration > flapTolerance) {
        const cause = `${source} longer than ${flapTolerance} s`;
        incidents.push({ time, symptom: "software", hosts, detect: flapTolerance, cause });
      }
      continue;
    }
    const after = detect(fault);
    if (effect.kind === "slow") {
      const { factor, duration } = effect;
      disturbances.push({ from: time, until: time + duration, hosts, factor });
      if (after >= duration) continue;
    }
    if (after === Infinity) continue;
    const incident = incidentOf(fault, () => after);
    if (incident !== undefined) incidents.push(incident);
  }
  return { incidents: incidents.toSorted((a, b) => a.time - b.time), disturbances };
}
