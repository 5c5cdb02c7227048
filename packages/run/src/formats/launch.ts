/**
 * What launch files have in common: one torchrun a host, which starts one process a device. The run
 * says how many of both; what they carry out is a command of yours.
 */
import { TriremeError } from "@trireme/core";
import { hostOf } from "@trireme/topology";
import type { ResolvedRun } from "../resolved.ts";

/** What a launch file needs and a run does not say. */
export interface LaunchOptions {
  /** What torchrun starts on each device, a word each: `["train.py", "--bf16"]`. */
  readonly command: readonly string[];
  /** Of the rendezvous on the first host; default 29500. */
  readonly port?: number;
}

/** Hosts, devices of each, and what the job is called. */
export interface Launch {
  /** A DNS label: lower-case letters, digits and hyphens, 40 characters at most. */
  readonly name: string;
  readonly hosts: number;
  readonly devices: number;
  readonly kind: "gpu" | "tpu" | "hpu" | "cpu";
  /** Of the accelerator. */
  readonly architecture: string;
  readonly port: number;
}

/**
 * The launch of a run.
 * @throws TriremeError "LAUNCH" for no command, no port, or hosts of different numbers of devices.
 */
export function launchOf({ name, cluster }: ResolvedRun, o: LaunchOptions): Launch {
  const { port = 29_500 } = o;
  if (o.command.length === 0) {
    throw new TriremeError("LAUNCH", "a launch needs a command; give one word or more");
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new TriremeError("LAUNCH", `port ${port} must be an integer from 1 to 65535`);
  }
  const counts = [...new Set(cluster.pools.map((pool) => pool.host.accelerators))];
  if (counts.length > 1) {
    const rule = `torchrun starts as many processes on every host, but pools have ${counts.join(" and ")} devices a host`;
    throw new TriremeError("LAUNCH", `${rule}; launch each pool by itself`);
  }
  const { kind, architecture } = hostOf(cluster, 0).accelerator;
  return {
    name: label(name),
    hosts: cluster.hosts,
    devices: counts[0]!,
    kind,
    architecture,
    port,
  };
}

/** Kubernetes appends the numbers of job and pod to a name, and takes 63 characters in all. */
function label(name: string): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const short = plain.slice(0, 40).replaceAll(/^-+|-+$/g, "");
  // A service is named after the job, and must open with a letter.
  return /^[a-z]/.test(short) ? short : `run-${short}`.replace(/-$/, "").slice(0, 40);
}
