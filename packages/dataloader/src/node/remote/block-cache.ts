/** Blocks of remote objects on the local disk, as many as a limit allows: what was used last stays. */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Bytes, TriremeError } from "@trireme/core";

/** Where blocks are kept. */
export interface BlockCacheOptions {
  /** A directory of its own; it is made, and may be used by several processes and runs. */
  readonly directory: string;
  /**
   * The most that this process lets it grow to; two blocks at least. What is over it when the cache is
   * opened, or written, is removed, least recently used first.
   */
  readonly limit: Bytes;
}

const prefix = "block-";

/** A cache. */
export class BlockCache {
  readonly #directory: string;
  readonly #limit: Bytes;
  /** Sizes by file name, least recently used first. */
  readonly #sizes = new Map<string, number>();
  #held = 0;

  private constructor({ directory, limit }: BlockCacheOptions) {
    this.#directory = directory;
    this.#limit = limit;
  }

  /** Bytes there are. */
  get held(): Bytes {
    return this.#held;
  }

  static async open(options: BlockCacheOptions, blockBytes: Bytes): Promise<BlockCache> {
    const { directory, limit } = options;
    if (!(limit >= 2 * blockBytes)) {
      throw new TriremeError(
        "REMOTE",
        `a cache of ${limit} bytes does not hold two blocks of ${blockBytes}; give it ${2 * blockBytes} at least`,
      );
    }
    const cache = new BlockCache(options);
    await mkdir(directory, { recursive: true });
    const found: { readonly name: string; readonly size: number; readonly used: number }[] = [];
    for (const name of await readdir(directory)) {
      if (!name.startsWith(prefix)) continue;
      if (name.endsWith(".tmp")) await removeStale(join(directory, name));
      else {
        const info = await stat(join(directory, name)).catch(() => undefined);
        if (info !== undefined) found.push({ name, size: info.size, used: info.mtimeMs });
      }
    }
    for (const { name, size } of found.sort((a, b) => a.used - b.used)) cache.#note(name, size);
    await cache.#shrink();
    return cache;
  }

  /** A block of `size` bytes; undefined where there is none of that size. */
  async get(object: string, block: number, size: number): Promise<Uint8Array | undefined> {
    const name = nameOf(object, block);
    const path = join(this.#directory, name);
    const bytes = await readFile(path).catch(() => undefined);
    if (bytes === undefined || bytes.length !== size) {
      this.#forget(name);
      return undefined;
    }
    this.#note(name, size);
    const now = new Date();
    await utimes(path, now, now).catch(() => undefined);
    return bytes;
  }

  /** Keeps a block: whole or, if the process ends meanwhile, not at all. */
  async put(object: string, block: number, bytes: Uint8Array): Promise<void> {
    const name = nameOf(object, block);
    const path = join(this.#directory, name);
    // Threads of one process may bring the same block at once.
    const temporary = `${path}.${randomUUID()}.tmp`;
    await writeFile(temporary, bytes);
    await rename(temporary, path);
    this.#note(name, bytes.length);
    await this.#shrink();
  }

  #note(name: string, size: number): void {
    this.#forget(name);
    this.#sizes.set(name, size);
    this.#held += size;
  }

  #forget(name: string): void {
    this.#held -= this.#sizes.get(name) ?? 0;
    this.#sizes.delete(name);
  }

  async #shrink(): Promise<void> {
    while (this.#held > this.#limit) {
      const [oldest] = this.#sizes.keys();
      if (oldest === undefined) return;
      this.#forget(oldest);
      await rm(join(this.#directory, oldest), { force: true });
    }
  }
}

function nameOf(object: string, block: number): string {
  return `${prefix}${createHash("sha256").update(object).digest("hex").slice(0, 32)}-${block}`;
}

/** Half a block of a process that ended; one that is a minute old at least, as others may be writing. */
async function removeStale(path: string): Promise<void> {
  const info = await stat(path).catch(() => undefined);
  if (info !== undefined && Date.now() - info.mtimeMs > 60_000) await rm(path, { force: true });
}
