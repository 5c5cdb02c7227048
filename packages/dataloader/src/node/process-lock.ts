/**
 * Files that say that a process is at work on others, so that a second one does not write them too: two
 * runs of one preparation, or all ranks of a host that fetch the same file as they start.
 */
import { mkdir, open, readFile, rm, rmdir, stat, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Seconds, TriremeError } from "@trireme/core";
import { isAlive } from "./is-alive.ts";

/** Who holds a lock. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** Since it was taken, or last refreshed. */
  readonly age: Seconds;
}

/** What the file of a lock says, and how old it is. */
interface Found extends LockHolder {
  readonly text: string;
}

/** A file is made and then written; one that is still empty after so long is of a process that died in between. */
const unwritten: Seconds = 10;

/** Ten seconds and more of waiting for others' turns; a link to nowhere is there and is not, for ever. */
const mostTries = 2000;

/**
 * Takes the lock; gives who holds it where somebody does. That of a process of this machine that has
 * ended is taken over, by one of those that want it, and so is one that nobody has refreshed for
 * longer than `deserted`. @throws what the file system does where the file cannot be made.
 */
export async function tryLock(
  path: string,
  deserted: Seconds = Infinity,
): Promise<LockHolder | undefined> {
  for (let tries = 0; tries < mostTries; tries++) {
    const file = await open(path, "wx").catch(absentOn("EEXIST"));
    if (file !== undefined) {
      await file.writeFile(own());
      await file.close();
      return undefined;
    }
    const found = await read(path);
    // Gone meanwhile: it is free.
    if (found === undefined) continue;
    if (found.text === "" && found.age <= unwritten) await sleep(10);
    else if (!isFree(found, deserted)) return found;
    else if (!(await clear(path, deserted))) await sleep(10);
  }
  throw new TriremeError("LOCK", `${path}: neither to be had nor held by anybody; remove it`);
}

/** Says that whoever holds the lock is still at work. */
export async function refreshLock(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

/** Gives the lock back, unless another process has taken it over. */
export async function unlock(path: string): Promise<void> {
  const found = await read(path);
  if (found?.text === own()) await rm(path, { force: true });
}

function own(): string {
  return `${process.pid} ${hostname()}`;
}

function isFree({ text, pid, host, age }: Found, deserted: Seconds): boolean {
  return text === "" || age > deserted || (host === hostname() && !isAlive(pid));
}

/**
 * Removes a lock that is nobody's. One process at a time looks and removes, as says a directory that only one can
 * make: else the second would remove what the first has taken by then.
 * @returns Whether there was a turn.
 */
async function clear(path: string, deserted: Seconds): Promise<boolean> {
  const turn = `${path}.turn`;
  const made = await mkdir(turn).then(() => true, absentOn("EEXIST"));
  if (made === undefined) {
    // Of a process that died at it.
    const info = await stat(turn).catch(() => undefined);
    if (info !== undefined && ageOf(info.mtimeMs) > unwritten)
      await rmdir(turn).catch(() => undefined);
    return false;
  }
  try {
    const found = await read(path);
    if (found !== undefined && isFree(found, deserted)) await rm(path, { force: true });
  } finally {
    await rmdir(turn).catch(() => undefined);
  }
  return true;
}

async function read(path: string): Promise<Found | undefined> {
  const [text, info] = await Promise.all([
    readFile(path, "utf8").catch(absentOn("ENOENT")),
    stat(path).catch(absentOn("ENOENT")),
  ]);
  if (text === undefined || info === undefined) return undefined;
  const [pid = "", host = ""] = text.split(" ");
  return { text, pid: Number(pid), host, age: ageOf(info.mtimeMs) };
}

function ageOf(changed: number): Seconds {
  return (Date.now() - changed) / 1000;
}

/** Undefined for errors of this code; throws others. */
function absentOn(code: string): (cause: unknown) => undefined {
  return (cause) => {
    if (cause instanceof Error && "code" in cause && cause.code === code) return undefined;
    throw cause;
  };
}
