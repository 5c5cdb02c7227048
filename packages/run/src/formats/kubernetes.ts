/**
 * A run as a Kubernetes manifest: a JobSet (jobset.x-k8s.io/v1alpha2), whose pods are numbered by
 * their index, or a PyTorchJob of the Kubeflow training operator (kubeflow.org/v1), which tells
 * torchrun by PET_ variables how many there are and where the first is.
 */
import { TriremeError } from "@trireme/core";
import type { ResolvedRun } from "../resolved.ts";
import { type Launch, type LaunchOptions, launchOf } from "./launch.ts";

/** What a manifest needs and a run does not say. */
export interface KubernetesOptions extends LaunchOptions {
  /** The container's. */
  readonly image: string;
  readonly namespace?: string;
  /** How often a failed job starts again; default 0. */
  readonly restarts?: number;
  /** What a device is called among a node's resources; default as its vendor's plugin says. */
  readonly resource?: string;
}

/** A Kubernetes object, for `formatYaml`. */
export type Manifest = Readonly<Record<string, unknown>>;

/**
 * The JobSet that runs a command on every device of a run's cluster.
 * @throws TriremeError "LAUNCH"; see `launchOf`.
 */
export function toJobSet(run: ResolvedRun, o: KubernetesOptions): Manifest {
  const launch = launchOf(run, o);
  const { name, hosts, devices, port } = launch;
  const torchrun = [
    "torchrun",
    `--nnodes=${hosts}`,
    `--nproc-per-node=${devices}`,
    // Kubernetes puts in the index that the job controller gives each pod.
    "--node-rank=$(JOB_COMPLETION_INDEX)",
    `--master-addr=${name}-workers-0-0.${name}`,
    `--master-port=${port}`,
  ];
  return {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: metadata(launch, o),
    spec: {
      failurePolicy: { maxRestarts: restarts(o) },
      replicatedJobs: [
        {
          name: "workers",
          replicas: 1,
          template: {
            spec: {
              parallelism: hosts,
              completions: hosts,
              completionMode: "Indexed",
              // One lost pod stops the step everywhere: all restart together, or none.
              backoffLimit: 0,
              template: {
                spec: {
                  restartPolicy: "Never",
                  ...pod(launch, o, torchrun, { containerPort: port }),
                },
              },
            },
          },
        },
      ],
    },
  };
}

/**
 * The PyTorchJob that runs a command on every device of a run's cluster.
 * @throws TriremeError "LAUNCH"; see `launchOf`.
 */
export function toPyTorchJob(run: ResolvedRun, o: KubernetesOptions): Manifest {
  const launch = launchOf(run, o);
  const port = { name: "pytorchjob-port", containerPort: launch.port };
  const replicas = (count: number): unknown => ({
    replicas: count,
    restartPolicy: restarts(o) > 0 ? "OnFailure" : "Never",
    template: { spec: pod(launch, o, ["torchrun"], port) },
  });
  return {
    apiVersion: "kubeflow.org/v1",
    kind: "PyTorchJob",
    metadata: metadata(launch, o),
    spec: {
      nprocPerNode: `${launch.devices}`,
      runPolicy: { backoffLimit: restarts(o) },
      pytorchReplicaSpecs: {
        Master: replicas(1),
        ...(launch.hosts > 1 ? { Worker: replicas(launch.hosts - 1) } : {}),
      },
    },
  };
}

function metadata({ name }: Launch, { namespace }: KubernetesOptions): Manifest {
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

function restarts({ restarts: count = 0 }: KubernetesOptions): number {
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new TriremeError("LAUNCH", `restarts ${count} must be an integer from 0 up`);
}

function pod(
  launch: Launch,
  o: KubernetesOptions,
  torchrun: readonly string[],
  port: Manifest,
): Manifest {
  const resource = o.resource ?? resourceOf(launch);
  return {
    containers: [
      {
        // The training operator looks for a container of this name.
        name: "pytorch",
        image: o.image,
        command: [...torchrun, ...o.command.map(literal)],
        ports: [port],
        resources: { limits: { [resource]: launch.devices } },
        volumeMounts: [{ name: "shared-memory", mountPath: "/dev/shm" }],
      },
    ],
    // A container's own 64 MiB are too few for the processes of a host to exchange data through.
    volumes: [{ name: "shared-memory", emptyDir: { medium: "Memory" } }],
  };
}

function resourceOf({ kind, architecture }: Launch): string {
  if (kind === "cpu") return "cpu";
  if (kind === "tpu") return "google.com/tpu";
  if (kind === "hpu") return "habana.ai/gaudi";
  return architecture.startsWith("cdna") ? "amd.com/gpu" : "nvidia.com/gpu";
}

/** Kubernetes replaces `$(NAME)` in a command, and `$$` by `$`. */
function literal(word: string): string {
  return word.replaceAll("$", "$$$$");
}
