/**
 * The lock of a journal on this machine: a local socket that one process can hold and the kernel
 * takes back when it dies, however it dies. Whoever waits is connected to it, and told by the close:
 * no lock file to grow stale, nothing polled.
 */
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { type Server, type Socket, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Gives a lock up. */
type Release = () => Promise<void>;

/** Waits for the lock of a journal. @returns What gives it up. */
export async function lockJournal(directory: string, signal?: AbortSignal): Promise<Release> {
  const name = socketName("journal", directory);
  for (;;) {
    signal?.throwIfAborted();
    const lock = await tryListen(name);
    if (lock !== undefined) return lock;
    signal?.throwIfAborted();
    await untilClosed(name, signal);
  }
}

/**
 * Locks a directory, which exists, against other processes of this machine that lock it too, whatever
 * name they have for it; without waiting.
 * @returns What gives the lock up; undefined where another process has it, or this one already.
 */
export async function lockDirectory(directory: string): Promise<Release | undefined> {
  const name = socketName("directory", await realpath(directory));
  const lock = await tryListen(name);
  if (lock !== undefined || name.startsWith("\0")) return lock;
  // What is in the way may be the file of a process that is gone.
  return (await isStale(name)) ? tryListen(name) : undefined;
}

/** Whether nobody listens at a socket file, which is then removed. */
function isStale(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(name);
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      const stale = error.code === "ECONNREFUSED";
      if (stale) rmSync(name, { force: true });
      resolve(stale);
    });
  });
}

/** Linux and Windows have names that vanish with their process; elsewhere a file stands for one. */
function socketName(what: "journal" | "directory", directory: string): string {
  const id = `trireme-${what}-${createHash("sha256").update(directory).digest("hex").slice(0, 32)}`;
  if (process.platform === "linux") return `\0${id}`;
  if (process.platform === "win32") return `\\\\.\\pipe\\${id}`;
  return join(tmpdir(), `${id}.sock`);
}

function tryListen(name: string): Promise<Release | undefined> {
  return new Promise((resolve, reject) => {
    const waiting = new Set<Socket>();
    const server: Server = createServer((socket) => {
      waiting.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => waiting.delete(socket));
    });
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(name, () => {
      // The lock lasts as long as the process does, and does not make it last.
      server.unref();
      resolve(
        () =>
          new Promise((released) => {
            server.close(() => released());
            for (const socket of waiting) socket.destroy();
          }),
      );
    });
  });
}

function untilClosed(name: string, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(name);
    const abort = (): void => {
      socket.destroy();
      reject(signal?.reason instanceof Error ? signal.reason : new Error("given up"));
    };
    signal?.addEventListener("abort", abort, { once: true });
    const over = (): void => {
      signal?.removeEventListener("abort", abort);
      resolve();
    };
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // A socket file whose process is gone.
      if (error.code === "ECONNREFUSED" && !name.startsWith("\0")) rmSync(name, { force: true });
    });
    socket.on("close", over);
    socket.resume();
  });
}
