/**
 * Finding and killing all that a worker has started, wherever it has hidden: every process of its
 * group, every descendant, and every process whose environment still has the tree's mark (a child
 * that made a session of its own and lost its parent). Where there is no /proc, the groups alone.
 */
import { readFileSync, readdirSync } from "node:fs";
import { TriremeError, type Seconds } from "@trireme/core";
import type { Clock } from "./clock.ts";

/** Variable of the environment that marks the processes of an agent. */
export const treeVariable = "TRIREME_TREE";

/** Which processes are meant. */
export interface ProcessTree {
  /** The mark, or what it begins with. */
  readonly mark: string;
  /** Process groups, by their leader. */
  readonly groups: ReadonlySet<number>;
}

const hasProc = process.platform === "linux";

/** The live processes of a tree; without /proc, its groups as negative numbers, as `kill` takes them. */
export function processesOf({ mark, groups }: ProcessTree): readonly number[] {
  if (!hasProc) return [...groups].map((group) => -group).filter(isAlive);
  const parents = new Map<number, number>();
  const found = new Set<number>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const stat = readText(`/proc/${pid}/stat`);
    // The name, in brackets, may have any character: the fields begin after the last bracket.
    const [state, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === undefined || state === "" || state === "Z" || state === "X") continue;
    parents.set(pid, Number(parent));
    if (groups.has(Number(group)) || isMarked(pid, mark)) found.add(pid);
  }
  // Descendants: a parent may have a greater number than its child, so until nothing is added.
  for (let before = -1; before < found.size;) {
    before = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

function isMarked(pid: number, mark: string): boolean {
  return `\0${readText(`/proc/${pid}/environ`)}`.includes(`\0${treeVariable}=${mark}`);
}

/** Empty for a process that is gone, or another user's. */
function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // Gone in the meantime, which is what was wanted.
    }
  }
}

/**
 * Kills a tree: asks it to end, and after the grace makes it. Resolves once nothing of it is left.
 * @param grace 0 kills at once.
 * @throws TriremeError "PROCESS" where processes outlive SIGKILL by `deadline` (in a call of the
 * kernel that cannot be interrupted), with their numbers.
 */
export async function killTree(
  tree: ProcessTree,
  grace: Seconds,
  deadline: Seconds,
  clock: Clock,
): Promise<void> {
  const begun = clock.now();
  let alive = processesOf(tree);
  if (alive.length > 0 && grace > 0) {
    signal(alive, "SIGTERM");
    // A stopped process takes no SIGTERM before it goes on.
    signal(alive, "SIGCONT");
  }
  for (let pause = 0.002; alive.length > 0; pause = Math.min(2 * pause, 0.1)) {
    const waited = clock.now() - begun;
    if (waited >= grace) signal(alive, "SIGKILL");
    if (waited >= grace + deadline) {
      throw new TriremeError(
        "PROCESS",
        `processes ${alive.join(", ")} still live ${deadline} s after SIGKILL`,
      );
    }
    await new Promise<void>((resolve) => {
      clock.after(pause, resolve);
    });
    alive = processesOf(tree);
  }
}
