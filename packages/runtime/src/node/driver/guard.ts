/**
 * A guard that outlives its agent by a moment: a shell that waits for the agent's end and then kills
 * whatever of its workers is left. An agent that is killed cannot do it itself, and a worker whose
 * agent is gone would hold its device for ever. A process of a megabyte, asleep until then.
 */
import { spawn } from "node:child_process";
import { treeVariable } from "./process-tree.ts";

/**
 * `read` returns when the agent's end of the pipe is closed, by the kernel if need be. Marks may be
 * looked up in any order, and processes may fork meanwhile: it looks until nothing is found. A few
 * rounds without effect are processes that cannot be killed; it does not stay for them.
 */
const script = `
while read -r line; do [ "$line" = dismiss ] && exit 0; done
rounds=0
while [ $rounds -lt 50 ]; do
  found=
  for file in $(grep -slzxF -- "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}; pid=\${pid%/environ}
    kill -KILL "$pid" 2>/dev/null && found=1
  done
  [ -z "$found" ] && exit 0
  rounds=$((rounds + 1)); sleep 0.1
done
`;

export interface Guard {
  /** Ends the guard: there is nothing left to watch over. */
  dismiss(): void;
}

/** Starts a guard of the processes with this mark; none where the system has no /proc. */
export function startGuard(mark: string): Guard {
  if (process.platform !== "linux") return { dismiss: () => undefined };
  // In a session of its own: what ends the agent's group (Ctrl-C) must not end its guard. Its
  // environment has no mark, so that it does not find itself.
  const { [treeVariable]: _, ...environment } = process.env;
  const guard = spawn("/bin/sh", ["-c", script, "guard", `${treeVariable}=${mark}`], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: environment,
  });
  guard.unref();
  // A guard that is gone is not missed while the agent lives.
  guard.on("error", () => undefined);
  guard.stdin.on("error", () => undefined);
  return { dismiss: () => guard.stdin.end("dismiss\n") };
}
