/**
 * Files of a web server or an object store, brought to a local path once: taken up where a broken
 * transfer stopped, tried again with growing pauses, checked, and put in place by a rename, so that a
 * file that is there is whole. Another `fetch` (one that signs for S3, such as aws4fetch's) goes in as
 * an option.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Seconds, TriremeError } from "@trireme/core";
import { refreshLock, tryLock, unlock } from "../process-lock.ts";
import { statusFailure } from "./http-object.ts";
import { RemoteFailure } from "./remote-object.ts";
import { type RetryOptions, retrying } from "./retry.ts";

/** What to bring, and how hard to try. */
export interface RemoteFileOptions extends RetryOptions {
  readonly url: string;
  /** Where it goes; directories are made. A file that is there is taken for the one wanted. */
  readonly path: string;
  /** Hex digest to hold it to, whether it was there or is brought. */
  readonly sha256?: string;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  readonly signal?: AbortSignal;
}

/** What came of it. */
export interface RemoteFile {
  readonly path: string;
  readonly bytes: number;
  /** Whether it was there already. */
  readonly cached: boolean;
}

/** A lock that nobody has refreshed for so long beyond the longest silence is of a machine that died. */
const deserted: Seconds = 120;

/**
 * Brings a file. Answers that trying again does not mend (404, 403) are refused at once. Of several
 * calls for one path, in any processes, one brings it and the others wait for that.
 */
export async function fetchFile(options: RemoteFileOptions): Promise<RemoteFile> {
  const { url, path, signal, sha256, silence = 30, deadline = Infinity } = options;
  // A slip of the pen must not cost the file that is there.
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256))
    throw new TriremeError("REMOTE", `sha256 ${JSON.stringify(sha256)} is not 64 hex digits`);
  if (await exists(path)) return finished(options, true);
  await mkdir(dirname(path), { recursive: true });
  const lock = `${path}.partial.lock`;
  const end = performance.now() + 1000 * deadline;
  for (;;) {
    signal?.throwIfAborted();
    const holder = await tryLock(lock, deserted + 2 * silence);
    if (holder === undefined) break;
    await sleep(100);
    if (await exists(path)) return finished(options, true);
    if (performance.now() > end) {
      throw new TriremeError(
        "REMOTE",
        `${path}: process ${holder.pid} of ${holder.host} has not brought it within ${deadline} s; if it has ended remove ${lock}`,
      );
    }
  }
  try {
    // It may have come between the first look and the lock.
    if (await exists(path)) return await finished(options, true);
    const partial = new Partial(path);
    let refreshed = Date.now();
    await retrying(
      url,
      options,
      signal,
      () => partial.size(),
      async (inner, alive) => {
        const isAtWork = (): void => {
          alive();
          if (Date.now() - refreshed < 1000) return;
          refreshed = Date.now();
          void refreshLock(lock);
        };
        await refreshLock(lock);
        return transfer(options, partial, await partial.size(), inner, isAtWork);
      },
    );
    await partial.finish();
    return await finished(options, false);
  } finally {
    await unlock(lock);
  }
}

/** One request: all of the file, or what is missing of it if it has not changed since. */
async function transfer(
  options: RemoteFileOptions,
  partial: Partial,
  have: number,
  signal: AbortSignal,
  alive: () => void,
): Promise<void> {
  const { url, fetch: send = fetch } = options;
  const tag = have > 0 ? await partial.tag() : undefined;
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  if (tag !== undefined) {
    headers["range"] = `bytes=${have}-`;
    headers["if-range"] = tag;
  }
  const response = await send(url, { headers, signal });
  // A range that starts where the file ends: all of it is here already.
  const total = /^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1];
  if (response.status === 416 && Number(total) === have) return;
  // Asked for more than there is: what is here is of another version, so the next try starts over.
  if (response.status === 416) {
    await partial.begin(undefined);
    throw new RemoteFailure(`${url}: the file has become shorter`, true);
  }
  if (response.status !== 200 && response.status !== 206) throw statusFailure(url, response);
  if (response.body === null) throw new Error("an answer without a body");

  const continues = response.status === 206;
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  if (continues && Number(range?.[1]) !== have)
    throw new Error(`asked for bytes from ${have} on, got others`);
  const length = response.headers.get("content-length");
  const size = continues ? Number(range?.[2]) : length === null ? undefined : Number(length);
  if (!continues) await partial.begin(strongTag(response.headers.get("etag")));
  await partial.append(response.body, alive);
  const got = await partial.size();
  if (size !== undefined && got !== size)
    throw new Error(`the transfer broke off at ${got} of ${size} bytes`);
}

/** Only a strong tag says that bytes are the same. */
function strongTag(tag: string | null): string | undefined {
  return tag === null || tag.startsWith("W/") ? undefined : tag;
}

/** What there is of a file so far, and the tag of the version it is of. */
class Partial {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async size(): Promise<number> {
    return stat(`${this.#path}.partial`).then(
      ({ size }) => size,
      () => 0,
    );
  }

  async tag(): Promise<string | undefined> {
    return readFile(`${this.#path}.partial.tag`, "utf8").catch(() => undefined);
  }

  /** Starts over, with a version that can be asked for again where it has a tag. */
  async begin(tag: string | undefined): Promise<void> {
    await writeFile(`${this.#path}.partial`, "");
    if (tag === undefined) await rm(`${this.#path}.partial.tag`, { force: true });
    else await writeFile(`${this.#path}.partial.tag`, tag);
  }

  async append(body: AsyncIterable<Uint8Array>, alive: () => void): Promise<void> {
    const file = await open(`${this.#path}.partial`, "a");
    try {
      for await (const piece of body) {
        alive();
        await file.appendFile(piece);
      }
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async finish(): Promise<void> {
    await rename(`${this.#path}.partial`, this.#path);
    await rm(`${this.#path}.partial.tag`, { force: true });
  }
}

async function finished(
  { url, path, sha256 }: RemoteFileOptions,
  cached: boolean,
): Promise<RemoteFile> {
  if (sha256 !== undefined) {
    const hash = createHash("sha256");
    await pipeline(createReadStream(path), hash);
    const found = hash.digest("hex");
    if (found !== sha256.toLowerCase()) {
      // Out of the way, so that the next call brings it anew.
      await rm(path);
      throw new TriremeError(
        "REMOTE",
        `${path}: sha256 is ${found}, not ${sha256}${cached ? "" : `, as it came from ${url}`}; the file was removed`,
      );
    }
  }
  return { path, bytes: (await stat(path)).size, cached };
}

async function exists(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  if (info === undefined || info.isFile()) return info !== undefined;
  throw new TriremeError(
    "REMOTE",
    `${path}: is a directory or no regular file; give a file's path`,
  );
}
