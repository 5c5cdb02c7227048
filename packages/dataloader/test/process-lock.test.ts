import {
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { refreshLock, tryLock, unlock } from "../src/node/process-lock.ts";

/** Above the largest number that Linux gives a process. */
const gone = 99_999_999;
const mine = `${process.pid} ${hostname()}`;

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-lock-"));
});
afterAll(() => rm(directory, { recursive: true }));

/** The lock as it was left so many seconds ago. */
async function left(name: string, text: string, age = 0): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  const then = Date.now() / 1000 - age;
  await utimes(path, then, then);
  return path;
}

test("of many at once one takes a lock, free or of a process that ended, and the others hear who", async () => {
  // Taken over by whoever saw it first and by whoever saw it next, it was held twice in one of twenty tries.
  for (let i = 0; i < 100; i++) {
    const path =
      i % 2 === 0 ? join(directory, `${i}`) : await left(`${i}`, `${gone} ${hostname()}`);
    const all = await Promise.all(Array.from({ length: 5 }, () => tryLock(path)));
    expect(all.filter((holder) => holder === undefined)).toHaveLength(1);
    for (const holder of all) {
      if (holder !== undefined)
        expect(holder).toMatchObject({ pid: process.pid, host: hostname() });
    }
    await unlock(path);
  }
  expect(await readdir(directory)).toEqual([]);
});

test("a lock of another machine is kept, and taken over where nobody refreshed it for long", async () => {
  const path = await left("far", `${gone} elsewhere`, 100);
  expect(await tryLock(path)).toMatchObject({ pid: gone, host: "elsewhere" });
  expect(await tryLock(path, 200)).toMatchObject({ host: "elsewhere" });
  await refreshLock(path);
  expect(await tryLock(path, 50)).toMatchObject({ host: "elsewhere" });
  await left("far", `${gone} elsewhere`, 100);
  expect(await tryLock(path, 50)).toBeUndefined();
  expect(await readFile(path, "utf8")).toBe(mine);
});

test("a process gives back its own lock, not one that another has taken over", async () => {
  const path = await left("theirs", `${gone} elsewhere`);
  await unlock(path);
  expect(await readFile(path, "utf8")).toBe(`${gone} elsewhere`);
});

test("a process that died as it made a lock, or as it took one over, keeps nobody out", async () => {
  expect(await tryLock(await left("empty", "", 60))).toBeUndefined();
  const path = await left("dead", `${gone} ${hostname()}`);
  await mkdir(`${path}.turn`);
  await utimes(`${path}.turn`, 0, 0);
  expect(await tryLock(path)).toBeUndefined();
  // One that is being written is waited for.
  const half = await left("half", "");
  setTimeout(() => void writeFile(half, mine), 30);
  expect(await tryLock(half)).toMatchObject({ pid: process.pid });
});

test("what is no lock and lets none be made is named, not tried for ever", async () => {
  const path = join(directory, "link");
  await symlink(join(directory, "nowhere"), path);
  await expect(tryLock(path)).rejects.toThrow("link: neither to be had nor held by anybody");
});
