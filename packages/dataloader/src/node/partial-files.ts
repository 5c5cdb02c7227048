/**
 * The files of a preparation that is not finished, `<prefix>.partial.*`: tokens, lengths of documents,
 * and a note of how much of them counts, which is replaced whole and only after what it counts is on
 * the disk. So a process that is killed anywhere leaves files from which the next one goes on.
 */
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { TriremeError } from "@trireme/core";
import { encodeMegatronIndex } from "../megatron-index.ts";
import type { TokenType } from "../token-type.ts";
import { tryLock, unlock } from "./process-lock.ts";
import type { PrepareProgress } from "./prepare.ts";

/** What the note says. */
export interface Stored extends PrepareProgress {
  readonly version: 2;
  /** What the tokens depend on besides the documents. */
  readonly settings: string;
  /** Fingerprint of the documents done, one upon the other. */
  readonly chain: string;
  /** Whether all documents are in, and the files are on their way to their own names. */
  readonly finished: boolean;
}

/** Opened for appending. */
export class PartialFiles {
  readonly #prefix: string;
  readonly #tokens: FileHandle | undefined;
  readonly #lengths: FileHandle;
  stored: Stored;

  private constructor(
    prefix: string,
    tokens: FileHandle | undefined,
    lengths: FileHandle,
    stored: Stored,
  ) {
    this.#prefix = prefix;
    this.#tokens = tokens;
    this.#lengths = lengths;
    this.stored = stored;
  }

  /** Those of a stopped run, cut to what counts, or new ones. */
  static async open(prefix: string, settings: string): Promise<PartialFiles> {
    await lock(prefix);
    try {
      return await PartialFiles.#open(prefix, settings);
    } catch (cause) {
      await unlock(lockOf(prefix));
      throw cause;
    }
  }

  static async #open(prefix: string, settings: string): Promise<PartialFiles> {
    const stored = await readNote(prefix, settings);
    if (stored.finished) {
      const lengths = await openAppending(`${prefix}.partial.lengths`);
      await cut(lengths, `${prefix}.partial.lengths`, 4 * stored.documents);
      return new PartialFiles(prefix, undefined, lengths, stored);
    }
    const tokens = await openAppending(`${prefix}.partial.bin`);
    try {
      const lengths = await openAppending(`${prefix}.partial.lengths`);
      await cut(tokens, `${prefix}.partial.bin`, stored.bytes);
      await cut(lengths, `${prefix}.partial.lengths`, 4 * stored.documents);
      return new PartialFiles(prefix, tokens, lengths, stored);
    } catch (cause) {
      await tokens.close();
      throw cause;
    }
  }

  async append(
    parts: readonly Uint8Array[],
    lengths: Int32Array<ArrayBuffer>,
    now: PrepareProgress & { readonly chain: string },
  ): Promise<void> {
    for (const part of parts) await this.#tokens?.appendFile(part);
    await this.#lengths.appendFile(new Uint8Array(lengths.buffer));
    await this.#tokens?.datasync();
    await this.#lengths.datasync();
    await this.#note({ ...this.stored, ...now });
  }

  /**
   * The index, then both files under their own names; gives the bytes of the index. Each step may have
   * been done by a run that was killed after it: the note goes last.
   */
  async finish(type: TokenType): Promise<number> {
    const { documents } = this.stored;
    await this.#note({ ...this.stored, finished: true });
    const prefix = this.#prefix;
    const bytes = await readFile(`${prefix}.partial.lengths`);
    const lengths = new Int32Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + 4 * documents),
    );
    const starts = Float64Array.from({ length: documents + 1 }, (_, i) => i);
    const index = encodeMegatronIndex({ type, lengths, documents: starts });
    await writeFile(`${prefix}.partial.idx`, index, { flush: true });
    if (await exists(`${prefix}.partial.bin`))
      await rename(`${prefix}.partial.bin`, `${prefix}.bin`);
    const { size } = await stat(`${prefix}.bin`).catch(() => ({ size: -1 }));
    if (size !== this.stored.bytes) {
      throw new TriremeError(
        "PREPARE",
        `${prefix}.bin: ${size < 0 ? "gone" : `${size} bytes`}, but the stopped run had written ${this.stored.bytes}; remove ${prefix}.partial.* to start anew`,
      );
    }
    await rename(`${prefix}.partial.idx`, `${prefix}.idx`);
    await rm(`${prefix}.partial.json`);
    await rm(`${prefix}.partial.lengths`);
    return index.length;
  }

  async close(): Promise<void> {
    await this.#tokens?.close();
    await this.#lengths.close();
    await unlock(lockOf(this.#prefix));
  }

  async #note(stored: Stored): Promise<void> {
    this.stored = stored;
    const path = `${this.#prefix}.partial.json`;
    await writeFile(`${path}.tmp`, JSON.stringify(stored), { flush: true });
    await rename(`${path}.tmp`, path);
  }
}

/** Keeps two runs from writing the same files: each would append to what the other counts. */
async function lock(prefix: string): Promise<void> {
  const path = lockOf(prefix);
  const holder = await tryLock(path).catch((cause: unknown) => {
    throw new TriremeError("PREPARE", `${path}: cannot be written; does its directory exist?`, {
      cause,
    });
  });
  if (holder === undefined) return;
  throw new TriremeError(
    "PREPARE",
    `${prefix}: process ${holder.pid} of ${holder.host} is preparing it; wait for it, or if it has ended remove ${path}`,
  );
}

function lockOf(prefix: string): string {
  return `${prefix}.partial.lock`;
}

async function readNote(prefix: string, settings: string): Promise<Stored> {
  const path = `${prefix}.partial.json`;
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) {
    const nothing = { documents: 0, tokens: 0, bytes: 0, textBytes: 0 };
    return { version: 2, settings, chain: "", finished: false, ...nothing };
  }
  let stored: Stored | undefined;
  try {
    stored = JSON.parse(text);
  } catch {
    // Falls to the refusal: nobody but another program leaves half a note.
  }
  if (stored?.version !== 2 || stored.settings !== settings) {
    throw new TriremeError(
      "PREPARE",
      `${prefix}: the stopped run had another tokenizer or other settings; remove ${prefix}.partial.* to start anew`,
    );
  }
  return stored;
}

async function openAppending(path: string): Promise<FileHandle> {
  return open(path, "a+").catch((cause: unknown) => {
    throw new TriremeError("PREPARE", `${path}: cannot be written; does its directory exist?`, {
      cause,
    });
  });
}

/** Drops what a crash left behind what counts; a file that has less than that is no file of this run. */
async function cut(file: FileHandle, path: string, size: number): Promise<void> {
  const { size: found } = await file.stat();
  if (found < size) {
    throw new TriremeError(
      "PREPARE",
      `${path}: ${found} bytes, but the stopped run had written ${size}; remove the .partial files to start anew`,
    );
  }
  await file.truncate(size);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
