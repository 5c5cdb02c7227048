/**
 * RSC's health checks (HPCA'25, section II-C): run every 5 minutes and around each job. A failed
 * check of high severity takes the host away from its jobs now; of low severity, once they have ended.
 */
import { type Seconds, TriremeError, minutes, nearestName } from "@trireme/core";

export type Severity = "high" | "low";

export interface HealthCheck {
  readonly name: string;
  readonly severity: Severity;
}

const high = (name: string): HealthCheck => ({ name, severity: "high" });
const low = (name: string): HealthCheck => ({ name, severity: "low" });

export const healthChecks: readonly HealthCheck[] = [
  high("GPU unreachable"),
  high("NVLink error"),
  high("uncorrectable ECC error"),
  high("failed row remap"),
  high("PCIe link error"),
  high("InfiniBand link error"),
  high("block device error"),
  high("missing mount"),
  low("correctable ECC errors"),
  low("GPU clock throttled"),
  low("disk nearly full"),
  low("service not running"),
];

/** Time between runs of the checks. */
export const healthCheckInterval: Seconds = minutes(5);

/** Remove the host now and requeue its jobs; drain it when they have ended; or leave it. */
export type HealthVerdict = "remove" | "drain" | "keep";

/**
 * The verdict on a host by the checks it failed.
 * @throws TriremeError "HEALTH_CHECK" on an unknown check, with the nearest.
 */
export function healthVerdict(
  failed: Iterable<string>,
  checks: readonly HealthCheck[] = healthChecks,
): HealthVerdict {
  let verdict: HealthVerdict = "keep";
  for (const name of failed) {
    const check = checks.find((each) => each.name === name);
    if (check === undefined) {
      const near = nearestName(
        name,
        checks.map((each) => each.name),
      );
      throw new TriremeError(
        "HEALTH_CHECK",
        `no health check "${name}"${near === undefined ? "" : `; did you mean "${near}"?`}`,
      );
    }
    if (check.severity === "high") return "remove";
    verdict = "drain";
  }
  return verdict;
}

export interface FailedCheck {
  readonly name: string;
  readonly host: number;
  readonly time: Seconds;
}

export interface EndedJob {
  readonly hosts: readonly number[];
  readonly started: Seconds;
  readonly ended: Seconds;
}

/**
 * The checks that a job's failure is put down to: those that failed on its hosts in its last 10
 * minutes or within 5 after its end, earliest first. None: the failure is the user's or unexplained.
 */
export function attribute(
  job: EndedJob,
  failures: Iterable<FailedCheck>,
  { before = minutes(10), after = minutes(5) }: { before?: Seconds; after?: Seconds } = {},
): FailedCheck[] {
  const hosts = new Set(job.hosts);
  const from = Math.max(job.started, job.ended - before);
  return [...failures]
    .filter(({ host, time }) => hosts.has(host) && time >= from && time <= job.ended + after)
    .toSorted((a, b) => a.time - b.time || a.host - b.host);
}

/**
 * Share of jobs that ended well and yet saw a check fail while they ran: the false positives of the
 * checks, which RSC holds below 1 %. 0 without jobs.
 */
export function falseAlarmShare(
  successful: readonly EndedJob[],
  failures: readonly FailedCheck[],
): number {
  const times = new Map<number, Seconds[]>();
  for (const { host, time } of failures) {
    const before = times.get(host);
    if (before === undefined) times.set(host, [time]);
    else before.push(time);
  }
  const hit = successful.filter(({ hosts, started, ended }) =>
    hosts.some((host) => times.get(host)?.some((time) => time >= started && time <= ended)),
  );
  return successful.length === 0 ? 0 : hit.length / successful.length;
}
