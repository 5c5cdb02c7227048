/**
 * A journal on the local disk: one line a record, each with its checksum, appended and forced to the
 * disk before it counts. A line that a crash tore is the last one and is cut off; one that is damaged
 * further up is an error, as something after it was promised.
 */
import { type FileHandle, open, realpath, rename } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import {
  type DriverRecord,
  decodeDriverRecord,
  encodeDriverRecord,
} from "../../driver/driver-record.ts";
import type { Journal, Leadership } from "../../driver/journal.ts";
import { makeDirectory } from "../file-storage.ts";
import { lockJournal } from "./journal-lock.ts";

/** File of the records in the directory of a journal. */
const fileName = "driver.journal";
/** Length from which the journal is written anew with its last record alone. */
const longestJournal = 16 << 20;

/** A journal in a directory, which is made. For drivers of one machine: the second waits for the first. */
export function fileJournal(
  directory: string,
  options: { readonly longest?: number } = {},
): Journal {
  return {
    async lead(signal) {
      await attempt(`make ${directory}`, makeDirectory(directory));
      const release = await lockJournal(await realpath(directory), signal);
      try {
        return await FileLeadership.begin(directory, options.longest ?? longestJournal, release);
      } catch (error) {
        await release();
        throw error;
      }
    },
  };
}

/** One line: checksum, term, record (empty before the first). The checksum is that of what follows it. */
function encodeLine(term: number, record: string): Buffer {
  const body = Buffer.from(`${term} ${record}`);
  const sum = crc32(body).toString(16).padStart(8, "0");
  return Buffer.concat([Buffer.from(`${sum} `), body, Buffer.from("\n")]);
}

interface Line {
  readonly term: number;
  readonly record: string;
}

function decodeLine(line: Buffer): Line | undefined {
  const body = line.subarray(9);
  if (
    line[8] !== 0x20 ||
    line.toString("latin1", 0, 8) !== crc32(body).toString(16).padStart(8, "0")
  ) {
    return undefined;
  }
  const text = body.toString();
  const space = text.indexOf(" ");
  return { term: Number(text.slice(0, space)), record: text.slice(space + 1) };
}

/** The last whole line, and how many bytes are whole. */
function readLines(bytes: Buffer, path: string): { readonly last?: Line; readonly whole: number } {
  let last: Line | undefined;
  let whole = 0;
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(0x0a, at);
    const line = end === -1 ? undefined : decodeLine(bytes.subarray(at, end));
    if (line === undefined) {
      const torn = end === -1 || end === bytes.length - 1;
      if (torn) break;
      throw new TriremeError(
        "JOURNAL",
        `${path} is damaged at byte ${at} of ${bytes.length}, with records after it: restore the file, or begin a new journal`,
      );
    }
    last = line;
    at = end + 1;
    whole = at;
  }
  return last === undefined ? { whole } : { last, whole };
}

class FileLeadership implements Leadership {
  readonly term: number;
  readonly record: DriverRecord | undefined;
  readonly #path: string;
  readonly #directory: string;
  readonly #longest: number;
  readonly #release: () => Promise<void>;
  readonly #lost = new AbortController();
  #file: FileHandle;
  #length: number;

  private constructor(
    place: { path: string; directory: string; longest: number; release: () => Promise<void> },
    file: FileHandle,
    length: number,
    last: Line | undefined,
  ) {
    this.#path = place.path;
    this.#directory = place.directory;
    this.#longest = place.longest;
    this.#release = place.release;
    this.#file = file;
    this.#length = length;
    this.term = (last?.term ?? 0) + 1;
    this.record =
      last === undefined || last.record === "" ? undefined : decodeDriverRecord(last.record);
  }

  static async begin(
    directory: string,
    longest: number,
    release: () => Promise<void>,
  ): Promise<FileLeadership> {
    const path = join(directory, fileName);
    const file = await attempt(`open ${path}`, open(path, "a+"));
    try {
      const { last, whole } = readLines(await file.readFile(), path);
      await attempt(`cut ${path} to ${whole} bytes`, file.truncate(whole));
      const place = { path, directory, longest, release };
      const leadership = new FileLeadership(place, file, whole, last);
      // A term begins with a line of its own: the next leader's will be greater even if this one says nothing.
      await leadership.#write(last?.record ?? "");
      await attempt(`force ${directory} to disk`, syncDirectory(directory));
      return leadership;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async append(record: DriverRecord): Promise<void> {
    this.#lost.signal.throwIfAborted();
    try {
      await this.#write(encodeDriverRecord(record));
    } catch (error) {
      // What is on the disk now is not known: only a new leader, who reads it, may go on.
      this.#lost.abort(error);
      throw error;
    }
  }

  async #write(record: string): Promise<void> {
    const line = encodeLine(this.term, record);
    if (this.#length + line.length > this.#longest && this.#length > line.length) {
      await this.#writeAnew(line);
      return;
    }
    const { size } = await this.#file.stat();
    if (size !== this.#length) {
      throw new TriremeError(
        "JOURNAL",
        `${this.#path} has ${size} bytes, not the ${this.#length} that this driver left: another one writes to it`,
      );
    }
    await attempt(`append to ${this.#path}`, this.#file.appendFile(line));
    await attempt(`force ${this.#path} to disk`, this.#file.datasync());
    this.#length += line.length;
  }

  /** The file with one line, in place of the old one at once or not at all. */
  async #writeAnew(line: Buffer): Promise<void> {
    const temporary = `${this.#path}.new`;
    const file = await attempt(`open ${temporary}`, open(temporary, "w"));
    await attempt(`write ${temporary}`, file.writeFile(line));
    await attempt(`force ${temporary} to disk`, file.sync());
    await file.close();
    await attempt(`rename ${temporary}`, rename(temporary, this.#path));
    await attempt(`force ${this.#directory} to disk`, syncDirectory(this.#directory));
    await this.#file.close();
    this.#file = await attempt(`open ${this.#path}`, open(this.#path, "a+"));
    this.#length = line.length;
  }

  async release(): Promise<void> {
    await this.#file.close();
    await this.#release();
  }
}

async function syncDirectory(directory: string): Promise<void> {
  // Windows cannot open a directory, and makes its entries durable by itself.
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function attempt<Result>(what: string, result: Promise<Result>): Promise<Result> {
  try {
    return await result;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("JOURNAL", `cannot ${what}: ${why}`, { cause });
  }
}
