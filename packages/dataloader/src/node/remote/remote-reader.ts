/** Ranges of a remote object, in blocks: tried again where they break, and kept on the local disk. */
import { randomUUID } from "node:crypto";
import { type Bytes, TriremeError } from "@trireme/core";
import { unlessAborted } from "../../unless-aborted.ts";
import { BlockCache, type BlockCacheOptions } from "./block-cache.ts";
import type { RemoteObject, RemoteStat } from "./remote-object.ts";
import { type RetryOptions, retrying } from "./retry.ts";

/** How an object is read. */
export interface RemoteReaderOptions extends RetryOptions {
  /** Bytes that one request asks for, and that the cache keeps as one. Default 4 MiB. */
  readonly blockBytes?: Bytes;
  /** Without one, only the last two blocks are kept, in memory. */
  readonly cache?: BlockCacheOptions;
}

/** An opened object. */
export interface RemoteReader {
  readonly name: string;
  readonly size: Bytes;
  /** What tells this version from another; undefined where the store tells none. */
  readonly version: string | undefined;
  /** Fills `into` with the bytes from `offset` on. */
  read(offset: number, into: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** Ends what is under way: its readers reject. */
  close(): void;
}

/**
 * Opens an object. All reads are of the version there is now: if it changes they are refused, as bytes
 * of two versions are data of neither. Blocks of a known version are found in the cache by any later
 * run. Readers of a block that is on its way share it; one that stops waiting leaves it to the cache.
 */
export async function openRemote(
  object: RemoteObject,
  options: RemoteReaderOptions = {},
  signal?: AbortSignal,
): Promise<RemoteReader> {
  const { blockBytes = 2 ** 22 } = options;
  if (!Number.isSafeInteger(blockBytes) || blockBytes < 1)
    throw new TriremeError("REMOTE", `blocks of ${blockBytes} bytes; use a positive integer`);
  const cache =
    options.cache === undefined ? undefined : await BlockCache.open(options.cache, blockBytes);
  const of = await retrying(
    object.name,
    options,
    signal,
    () => 0,
    (inner) => object.stat(inner),
  );
  return new BlockReader(object, of, blockBytes, cache, options);
}

const inMemory = 2;

class BlockReader implements RemoteReader {
  readonly name: string;
  readonly size: Bytes;
  readonly version: string | undefined;
  readonly #object: RemoteObject;
  readonly #of: RemoteStat;
  readonly #blockBytes: Bytes;
  readonly #cache: BlockCache | undefined;
  readonly #options: RetryOptions;
  /** What the cache knows this version by. */
  readonly #key: string;
  readonly #closed = new AbortController();
  /** Blocks that are in memory or on their way, least recently used first. */
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  constructor(
    object: RemoteObject,
    of: RemoteStat,
    blockBytes: Bytes,
    cache: BlockCache | undefined,
    options: RetryOptions,
  ) {
    this.name = object.name;
    this.size = of.size;
    this.version = of.version;
    this.#object = object;
    this.#of = of;
    this.#blockBytes = blockBytes;
    this.#cache = cache;
    this.#options = options;
    // Blocks of no known version serve this reader alone.
    const version = of.version ?? `once-${randomUUID()}`;
    this.#key = JSON.stringify([object.name, version, of.size, blockBytes]);
  }

  async read(offset: number, into: Uint8Array, signal?: AbortSignal): Promise<void> {
    const end = offset + into.length;
    if (!Number.isSafeInteger(offset) || offset < 0 || end > this.size) {
      throw new TriremeError(
        "RANGE",
        `${this.name}: bytes ${offset} to ${end} are outside 0 to ${this.size}`,
      );
    }
    for (let at = offset; at < end;) {
      const block = Math.floor(at / this.#blockBytes);
      const start = block * this.#blockBytes;
      const bytes = await this.#block(block, signal);
      const part = bytes.subarray(at - start, Math.min(bytes.length, end - start));
      into.set(part, at - offset);
      at += part.length;
    }
  }

  close(): void {
    this.#closed.abort(new TriremeError("REMOTE", `${this.name}: closed`));
    this.#blocks.clear();
  }

  async #block(block: number, signal: AbortSignal | undefined): Promise<Uint8Array> {
    signal?.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    const bytes = this.#blocks.get(block) ?? this.#load(block);
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    bytes.catch(() => this.#blocks.delete(block));
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= inMemory) break;
      this.#blocks.delete(oldest);
    }
    return unlessAborted(bytes, signal);
  }

  async #load(block: number): Promise<Uint8Array> {
    const start = block * this.#blockBytes;
    const bytes = new Uint8Array(Math.min(this.#blockBytes, this.size - start));
    const kept = await this.#cache?.get(this.#key, block, bytes.length);
    if (kept !== undefined) return kept;
    let done = 0;
    await retrying(
      this.name,
      this.#options,
      this.#closed.signal,
      () => done,
      async (inner, alive) => {
        const pieces = this.#object.range(start + done, start + bytes.length, this.#of, inner);
        for await (const piece of pieces) {
          alive();
          const wanted = piece.subarray(0, bytes.length - done);
          bytes.set(wanted, done);
          done += wanted.length;
          if (done === bytes.length) return;
        }
        if (done < bytes.length)
          throw new Error(
            `${this.name}: broke off at byte ${start + done} of ${start + bytes.length}`,
          );
      },
    );
    // A full disk is no reason to stop reading.
    await this.#cache?.put(this.#key, block, bytes).catch(() => undefined);
    return bytes;
  }
}
