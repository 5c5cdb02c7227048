/**
 * RSC's lemon-host detector (HPCA'25, section IV-A): seven signals of each host over 28 days; a host
 * whose signals lie beyond thresholds taken from the fleet's own distributions is a lemon.
 */
import { TriremeError, type Seconds, days } from "@trireme/core";

/** What is written of a host as it happens. */
export interface HostEvent {
  readonly host: number;
  readonly time: Seconds;
  readonly kind:
    /** A user told the scheduler to keep a job off the host. */
    | "excluded"
    /** A GPU reported an XID error. */
    | "xid"
    /** A repair ticket was filed. */
    | "ticket"
    /** The host was taken out of service. */
    | "out"
    /** A job of several hosts, or of this one alone, ended with NODE_FAIL on this host. */
    | "multi-host-failure"
    | "single-host-failure"
    /** A job of this host alone ended, whatever way. */
    | "single-host-job";
  /** Code of the XID error or number of the excluding job; events of one code count once. */
  readonly code?: number;
}

/** The paper's names, with host for node. */
export const lemonSignalNames = [
  "excl_jobid_count",
  "xid_cnt",
  "tickets",
  "out_count",
  "multi_host_host_fails",
  "single_host_host_fails",
  "single_host_host_failure_rate",
] as const;

export type LemonSignal = (typeof lemonSignalNames)[number];

/** One value for each host. */
export type LemonSignals = Readonly<Record<LemonSignal, Float64Array>>;

/**
 * The signals of hosts 0 … hosts−1 over the window that ends now (28 days by default). Exclusions are
 * counted by distinct jobs and XIDs by distinct codes, so that one loud job or device does not decide.
 */
export function lemonSignals(
  events: Iterable<HostEvent>,
  hosts: number,
  now: Seconds,
  window: Seconds = days(28),
): LemonSignals {
  const fresh = (): Float64Array => new Float64Array(hosts);
  const signals: Record<LemonSignal, Float64Array> = {
    excl_jobid_count: fresh(),
    xid_cnt: fresh(),
    tickets: fresh(),
    out_count: fresh(),
    multi_host_host_fails: fresh(),
    single_host_host_fails: fresh(),
    single_host_host_failure_rate: fresh(),
  };
  const jobs = fresh();
  const seen = new Set<string>();
  for (const { host, time, kind, code } of events) {
    if (!Number.isInteger(host) || host < 0 || host >= hosts) {
      throw new TriremeError("LEMONS", `event of host ${host}, but hosts are 0..${hosts - 1}`);
    }
    if (time > now || time <= now - window) continue;
    if (code !== undefined) {
      const key = `${host} ${kind} ${code}`;
      if (seen.has(key)) continue;
      seen.add(key);
    }
    if (kind === "single-host-job") jobs[host]!++;
    else signals[signalOf[kind]][host]!++;
  }
  for (let host = 0; host < hosts; host++) {
    const failed = signals.single_host_host_fails[host]!;
    // A failure without its job's end on record still is a job.
    const rate = failed === 0 ? 0 : failed / Math.max(failed, jobs[host]!);
    signals.single_host_host_failure_rate[host] = rate;
  }
  return signals;
}

const signalOf: Readonly<Record<Exclude<HostEvent["kind"], "single-host-job">, LemonSignal>> = {
  excluded: "excl_jobid_count",
  xid: "xid_cnt",
  ticket: "tickets",
  out: "out_count",
  "multi-host-failure": "multi_host_host_fails",
  "single-host-failure": "single_host_host_fails",
};

export type LemonThresholds = Readonly<Record<LemonSignal, number>>;

/**
 * A threshold for each signal: the given quantile of its distribution over the hosts (0.98 by default,
 * for about one host in a hundred is a lemon). A host must be above it to be flagged.
 * @throws TriremeError "LEMONS" when the quantile is not in (0, 1).
 */
export function lemonThresholds(signals: LemonSignals, quantile = 0.98): LemonThresholds {
  if (!(quantile > 0 && quantile < 1)) {
    throw new TriremeError("LEMONS", `quantile ${quantile} is not in (0, 1); 0.98 is usual`);
  }
  const at = (values: Float64Array): number =>
    values.toSorted()[Math.min(values.length - 1, Math.floor(quantile * values.length))] ?? 0;
  return {
    excl_jobid_count: at(signals.excl_jobid_count),
    xid_cnt: at(signals.xid_cnt),
    tickets: at(signals.tickets),
    out_count: at(signals.out_count),
    multi_host_host_fails: at(signals.multi_host_host_fails),
    single_host_host_fails: at(signals.single_host_host_fails),
    single_host_host_failure_rate: at(signals.single_host_host_failure_rate),
  };
}

export interface LemonSuspect {
  readonly host: number;
  /** Signals above their thresholds: the evidence. */
  readonly signals: readonly LemonSignal[];
}

/**
 * Hosts with at least `least` (3) signals above their thresholds, most signals first. Exclusions alone
 * do not count: users exclude hosts for reasons of their own, and the paper finds the signal weak.
 */
export function detectLemons(
  signals: LemonSignals,
  thresholds: LemonThresholds,
  least = 3,
): LemonSuspect[] {
  const suspects: LemonSuspect[] = [];
  for (let host = 0; host < signals.xid_cnt.length; host++) {
    const above = lemonSignalNames.filter((name) => signals[name][host]! > thresholds[name]);
    const strong = above.some((name) => name !== "excl_jobid_count");
    if (strong && above.length >= least) suspects.push({ host, signals: above });
  }
  return suspects.toSorted((a, b) => b.signals.length - a.signals.length || a.host - b.host);
}
