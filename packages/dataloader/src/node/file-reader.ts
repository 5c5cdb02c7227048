/** A file as a reader of bytes. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { TriremeError } from "@trireme/core";
import type { ByteReader } from "../byte-reader.ts";
import { FormatError } from "../format-error.ts";

/** A reader that holds a file open until it is closed. */
export interface FileReader extends ByteReader {
  /** Lets go of the file; a second time does nothing. */
  close(): void;
}

/** Bytes that one call to the system reads at most: it takes no more than 2 GiB. */
const mostBytes = 2 ** 30;

/**
 * Opens a file for reading anywhere in it. Reads block: a sample of some kilobytes from the page cache
 * takes less time than handing it to another thread; put a loader in a worker to overlap the disk.
 * @throws TriremeError "DATA" for what is missing or no regular file, and for reads after it was closed.
 */
export function openFileReader(path: string): FileReader {
  let descriptor: number | undefined;
  let size: number;
  try {
    // Before it is opened: opening a pipe waits for its writer.
    const info = statSync(path);
    if (!info.isFile()) {
      throw new TriremeError(
        "DATA",
        `${path}: ${info.isDirectory() ? "is a directory" : "is no regular file"}; give a file`,
      );
    }
    descriptor = openSync(path, "r");
    size = fstatSync(descriptor).size;
  } catch (cause) {
    if (cause instanceof TriremeError) throw cause;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const reason =
      code === "ENOENT" ? "no such file" : code === "EACCES" ? "permission denied" : code;
    throw new TriremeError("DATA", `${path}: ${reason}`, { cause });
  }
  return {
    name: path,
    size,
    read(offset, into) {
      // The number of a closed descriptor may by now be another file's.
      if (descriptor === undefined) throw new TriremeError("DATA", `${path}: closed`);
      for (let done = 0; done < into.byteLength;) {
        const wanted = Math.min(mostBytes, into.byteLength - done);
        const got = readSync(descriptor, into, done, wanted, offset + done);
        if (got === 0) {
          throw new FormatError(
            path,
            offset + done,
            `the file ends here; it had ${size} bytes when it was opened`,
          );
        }
        done += got;
      }
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}
