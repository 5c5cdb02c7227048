/**
 * Files that say that a process is at work on others, so that a second one does not write them too: two
 * runs of one preparation, or all ranks of a host that fetch the same file as they start.
 */
import { open, readFile, rm, stat, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import type { Seconds } from "@trireme/core";
import { isAlive } from "./is-alive.ts";

/** Who holds a lock. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** Since it was taken, or last refreshed. */
  readonly age: Seconds;
}

/**
 * Takes the lock; gives who holds it where somebody does. That of a process of this machine that has
 * ended is taken over. @throws what the file system does where the file cannot be made.
 */
export async function tryLock(path: string): Promise<LockHolder | undefined> {
  for (let tries = 0; ; tries++) {
    const file = await open(path, "wx").catch((cause: unknown) => {
      if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return undefined;
      throw cause;
    });
    if (file !== undefined) {
      await file.writeFile(`${process.pid} ${hostname()}`);
      await file.close();
      return undefined;
    }
    const [text, info] = await Promise.all([
      readFile(path, "utf8").catch(() => ""),
      stat(path).catch(() => undefined),
    ]);
    // Gone meanwhile: it is free.
    if (info === undefined && tries < 10) continue;
    const [pid = "", host = ""] = text.split(" ");
    if (host !== hostname() || isAlive(Number(pid)) || tries >= 10) {
      return { pid: Number(pid), host, age: (Date.now() - (info?.mtimeMs ?? 0)) / 1000 };
    }
    await rm(path, { force: true });
  }
}

/** Says that whoever holds the lock is still at work. */
export async function refreshLock(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

/** Gives the lock back. */
export async function unlock(path: string): Promise<void> {
  await rm(path, { force: true });
}
