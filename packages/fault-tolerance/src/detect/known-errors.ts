/**
 * What error messages mean: a rule for each of Acme's 29 reasons of failure (NSDI'24, table 3) and for
 * host errors that ByteRobust counts. Rules stand in order of cause before consequence: when a GPU
 * drops out, every other rank logs a timeout, and the timeout must not be blamed.
 */
import type { FaultClass } from "../models/causes.ts";

/** What to do: replace the host, restart where it stands, or have people change something first. */
export type LogAction = "evict" | "restart" | "fix";

export interface KnownError {
  readonly reason: string;
  readonly class: FaultClass;
  readonly pattern: RegExp;
  readonly action: LogAction;
  readonly mitigation: string;
}

const rule = (
  reason: string,
  kind: FaultClass,
  action: LogAction,
  pattern: RegExp,
  mitigation: string,
): KnownError => ({ reason, class: kind, pattern, action, mitigation });

const host = "host";
const code = "software";

export const knownErrors: readonly KnownError[] = [
  rule(
    "ECCError",
    host,
    "evict",
    /uncorrect\w+ ECC|double.bit ECC|row remap\w* fail|\bXid\b.*: (48|64|94|95)\b/i,
    "replace the host; reset the GPU and test its memory",
  ),
  rule(
    "NVLinkError",
    host,
    "evict",
    /NVLink\b.*(error|fail)|\bXid\b.*: 74\b/i,
    "replace the host; run the vendor's diagnostics on its NVLink bridges and switches",
  ),
  rule(
    "NodeFailure",
    host,
    "evict",
    /\bNODE_FAIL\b|kernel panic|fallen off the bus|\bXid\b.*: 79\b|GPU is lost/i,
    "replace the host; check power, PCIe and seating of the GPU",
  ),
  rule(
    "DiskFault",
    host,
    "evict",
    /I\/O error, dev |EXT4-fs error|XFS .*corrupt|nvme\d+.*(timeout|fail)/i,
    "replace the host; check its disks",
  ),
  rule(
    "NetworkError",
    "network",
    "evict",
    /mlx5_.*(link down|error|fail)|\bNET\/(IB|OFI)\b.*(error|status=)|ibv_\w+.*fail|port \d+ .*link down/i,
    "test the NIC, cable and switch port by pairs of hosts; raise NCCL's timeout if the port flaps",
  ),
  rule(
    "DiskSpace",
    host,
    "fix",
    /no space left on device|disk quota exceeded/i,
    "free the disk: old checkpoints and logs first",
  ),
  rule(
    "DataloaderKilled",
    code,
    "restart",
    /DataLoader worker \(pid.*\) (is killed|exited unexpectedly)/,
    "host memory has run out: use fewer loader workers, or smaller prefetch",
  ),
  rule(
    "OutOfMemoryError",
    code,
    "fix",
    /CUDA out of memory|\bOutOfMemoryError\b|CUDA_ERROR_OUT_OF_MEMORY/,
    "shard or recompute more, or use a smaller microbatch",
  ),
  rule(
    "CUDAError",
    host,
    "restart",
    /CUDA error:|CUDA_ERROR_\w+|device-side assert|illegal memory access|\bXid\b.*: (13|31)\b/i,
    "restart once; where it strikes one host again, replace it, and else look at the newest kernel",
  ),
  rule(
    "S3StorageError",
    "network",
    "restart",
    /botocore\.|\bS3\w*(Error|Exception)\b|SlowDown: /,
    "retry with backoff; spread the load on the store",
  ),
  rule(
    "ModelLoadingError",
    code,
    "fix",
    /in loading state_dict|unable to load weights|safetensors\w*Error/i,
    "load an older checkpoint; check that it is of this model",
  ),
  rule(
    "DatasetLoadingError",
    code,
    "fix",
    /DatasetGenerationError|(failed|error) (to load|loading) (the )?dataset/i,
    "check the path and the form of the dataset",
  ),
  rule(
    "ArgumentError",
    code,
    "fix",
    /\bArgumentError\b|error: (unrecognized arguments|argument )/,
    "correct the command line",
  ),
  ...(
    [
      ["FileNotFoundError", "check paths and mounts"],
      ["PermissionError", "check the owner and mode of the path"],
      ["ImportError", "install the missing package in the image"],
      ["AttributeError", "correct the code, or roll its last change back"],
      ["AssertionError", "correct the code, or roll its last change back"],
      ["ValueError", "correct the code, or roll its last change back"],
      ["ZeroDivisionError", "correct the code, or roll its last change back"],
      ["TypeError", "correct the code, or roll its last change back"],
      ["NameError", "correct the code, or roll its last change back"],
      ["KeyError", "correct the code, or roll its last change back"],
      ["SyntaxError", "correct the code, or roll its last change back"],
      ["IndexError", "correct the code, or roll its last change back"],
      ["CalledProcessError", "run the command by hand on the host"],
    ] as const
  ).map(([reason, mitigation]) => rule(reason, code, "fix", pythonError(reason), mitigation)),
  rule(
    "OSError",
    code,
    "restart",
    pythonError("OSError"),
    "check mounts and open files; restart once",
  ),
  // From here on consequences: what the other ranks log when one of them has gone.
  rule(
    "NCCLTimeoutError",
    "network",
    "restart",
    /Watchdog caught collective operation timeout|NCCL\b.*\btim(ed ?out|eout)\b/i,
    "find the rank that logged nothing in the flight record; test pairs of hosts",
  ),
  rule(
    "NCCLRemoteError",
    "network",
    "restart",
    /ncclRemoteError|remote process exited|NCCL\b.*remote error/i,
    "another rank has ended first: look at its log",
  ),
  rule(
    "ConnectionError",
    "network",
    "restart",
    /\bConnection\w*Error\b|connection (refused|reset by peer|timed out)|broken pipe/i,
    "restart; check the address and that the other end is up",
  ),
  rule(
    "RuntimeError",
    code,
    "fix",
    pythonError("RuntimeError"),
    "read the message: the code or one of its libraries has refused",
  ),
];

/** Python's own form, `Error: message` at the start of a line or after a module's name or a rank. */
function pythonError(name: string): RegExp {
  const also = name === "ImportError" ? "(?:ImportError|ModuleNotFoundError)" : name;
  return new RegExp(`(?:^|[\\s.])${also}(?::|$)`);
}
