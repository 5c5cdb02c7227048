import { TriremeError } from "@trireme/core";
import { type ResolvedRun, defineRun } from "@trireme/run";
import { formatYaml, parseYaml, toJobSet, toPyTorchJob, toSlurm } from "@trireme/run/formats";
import { describe, expect, it } from "vitest";

function runOn(cluster: object, name = "Llama 3, first try"): ResolvedRun {
  return defineRun({ name, model: "llama3-8b", cluster, plan: { globalBatch: 32 } });
}
const run = runOn({ host: "dgx-h100", hosts: 4 });
const command = ["train.py", "--note", "it's $HOME"];
const image = "registry/train:1";

describe("launch files", () => {
  it("for Slurm start one torchrun a host and keep the command's words", () => {
    const script = toSlurm(run, { command, time: "1-00:00:00", partition: "long" });
    expect(script).toBe(`#!/bin/bash
#SBATCH --job-name=llama-3-first-try
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --partition=long
#SBATCH --time=1-00:00:00
#SBATCH --output=%x-%j.out

set -euo pipefail
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)

srun torchrun \\
  --nnodes=4 \\
  --nproc-per-node=8 \\
  --rdzv-id="$SLURM_JOB_ID" \\
  --rdzv-backend=c10d \\
  --rdzv-endpoint="$first:29500" \\
  train.py --note 'it'\\''s $HOME'
`);
  });

  it("for a JobSet have as many indexed pods as hosts, which meet at the first", async () => {
    const manifest = toJobSet(run, { command, image, restarts: 3, namespace: "team" });
    expect(manifest).toMatchObject({
      kind: "JobSet",
      metadata: { name: "llama-3-first-try", namespace: "team" },
      spec: {
        failurePolicy: { maxRestarts: 3 },
        replicatedJobs: [
          {
            template: {
              spec: {
                parallelism: 4,
                completions: 4,
                completionMode: "Indexed",
                template: {
                  spec: {
                    containers: [
                      {
                        command: [
                          "torchrun",
                          "--nnodes=4",
                          "--nproc-per-node=8",
                          "--node-rank=$(JOB_COMPLETION_INDEX)",
                          "--master-addr=llama-3-first-try-workers-0-0.llama-3-first-try",
                          "--master-port=29500",
                          "train.py",
                          "--note",
                          "it's $$HOME",
                        ],
                        resources: { limits: { "nvidia.com/gpu": 8 } },
                      },
                    ],
                  },
                },
              },
            },
          },
        ],
      },
    });
    expect(await parseYaml(await formatYaml(manifest))).toEqual(manifest);
  });

  it("for a PyTorchJob have one master and the other hosts as workers", () => {
    const manifest = toPyTorchJob(run, { command, image });
    expect(manifest).toMatchObject({
      spec: {
        nprocPerNode: "8",
        pytorchReplicaSpecs: { Master: { replicas: 1 }, Worker: { replicas: 3 } },
      },
    });
    const alone = toPyTorchJob(runOn({ host: "dgx-h100", hosts: 1 }), { command, image });
    expect(alone).not.toHaveProperty("spec.pytorchReplicaSpecs.Worker");
  });

  it.each([
    ["175B", "run-175b"],
    ["***", "run"],
    [`${"a".repeat(39)} b`, "a".repeat(39)],
  ])("call a run named %j %s", (name, label) => {
    const script = toSlurm(runOn({ host: "dgx-h100", hosts: 1 }, name), { command });
    expect(script).toContain(`--job-name=${label}\n`);
  });

  it("on CPU hosts ask for no GPUs", () => {
    const cpu = runOn({ host: "local", devices: 2 });
    expect(toSlurm(cpu, { command })).not.toContain("gpus");
    expect(JSON.stringify(toJobSet(cpu, { command, image }))).toContain('"limits":{"cpu":2}');
  });

  it.each([
    ["mi355x-8", "amd.com/gpu"],
    ["gaudi3-8", "habana.ai/gaudi"],
    ["tpu-v6e", "google.com/tpu"],
  ])("ask Kubernetes for the devices of %s by the name of their plugin", (host, resource) => {
    const job = JSON.stringify(toJobSet(runOn({ host, hosts: 1 }), { command, image }));
    expect(job).toContain(`"limits":{"${resource}":8}`);
  });

  it.each([
    [{ command: [] }, /needs a command/],
    [{ command, port: 0 }, /port 0 must be an integer from 1 to 65535/],
    [{ command, partition: "a\n#SBATCH --x" }, /partition .* must be one word/],
  ])("%j is refused", (options, message) => {
    expect(() => toSlurm(run, options)).toThrow(TriremeError);
    expect(() => toSlurm(run, options)).toThrow(message);
  });

  it("a number of restarts below 0 is refused", () => {
    expect(() => toJobSet(run, { command, image, restarts: -1 })).toThrow(/restarts -1/);
  });
});
