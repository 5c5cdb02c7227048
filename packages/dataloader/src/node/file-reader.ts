/** A file as a reader of bytes. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { TriremeError } from "@trireme/core";
import type { ByteReader } from "../byte-reader.ts";
import { FormatError } from "../format-error.ts";

/** A reader that holds a file open until it is closed. */
export interface FileReader extends ByteReader {
  close(): void;
}

/**
 * Opens a file for reading anywhere in it. Reads block: a sample of some kilobytes from the page cache
 * takes less time than handing it to another thread; put a loader in a worker to overlap the disk.
 */
export function openFileReader(path: string): FileReader {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const reason =
      code === "ENOENT" ? "no such file" : code === "EACCES" ? "permission denied" : code;
    throw new TriremeError("DATA", `${path}: ${reason}`, { cause });
  }
  const { size } = fstatSync(descriptor);
  return {
    name: path,
    size,
    read(offset, into) {
      for (let done = 0; done < into.byteLength;) {
        const got = readSync(descriptor, into, done, into.byteLength - done, offset + done);
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
    close: () => closeSync(descriptor),
  };
}
