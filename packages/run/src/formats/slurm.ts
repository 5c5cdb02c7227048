/** A run as a Slurm batch script. */
import { TriremeError } from "@trireme/core";
import type { ResolvedRun } from "../resolved.ts";
import { type LaunchOptions, launchOf } from "./launch.ts";

/** What `sbatch` is told besides hosts and devices. */
export interface SlurmOptions extends LaunchOptions {
  readonly partition?: string;
  readonly account?: string;
  /** As Slurm writes it: `D-HH:MM:SS`, `HH:MM:SS` or minutes. */
  readonly time?: string;
}

/**
 * The batch script that runs a command on every device of a run's cluster, for `sbatch`.
 * @throws TriremeError "LAUNCH" for options that no line of `#SBATCH` can hold; see `launchOf`.
 */
export function toSlurm(run: ResolvedRun, o: SlurmOptions): string {
  const { name, hosts, devices, kind, port } = launchOf(run, o);
  const directives = {
    "job-name": name,
    nodes: hosts,
    "ntasks-per-node": 1,
    "gpus-per-node": kind === "gpu" ? devices : undefined,
    "cpus-per-task": kind === "cpu" ? devices : undefined,
    exclusive: true,
    partition: word("partition", o.partition),
    account: word("account", o.account),
    time: word("time", o.time),
    output: "%x-%j.out",
  };
  const lines = Object.entries(directives).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [value === true ? `#SBATCH --${key}` : `#SBATCH --${key}=${value}`];
  });
  return `#!/bin/bash
${lines.join("\n")}

set -euo pipefail
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)

srun torchrun \\
  --nnodes=${hosts} \\
  --nproc-per-node=${devices} \\
  --rdzv-id="$SLURM_JOB_ID" \\
  --rdzv-backend=c10d \\
  --rdzv-endpoint="$first:${port}" \\
  ${o.command.map(quoted).join(" ")}
`;
}

/** A directive's value ends at the first blank. */
function word(option: string, value: string | undefined): string | undefined {
  if (value === undefined || /^[\w.,:@/+-]+$/.test(value)) return value;
  const rule = "must be one word of letters, digits and . , : @ / + - _";
  throw new TriremeError("LAUNCH", `${option} ${JSON.stringify(value)} ${rule}`);
}

/** A word as bash reads it back. */
function quoted(text: string): string {
  return /^[\w.,:@%/+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
