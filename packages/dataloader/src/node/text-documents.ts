/** Plain text from the file system, strictly: what is no text is refused by name, not guessed at. */
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import type { Document } from "../document.ts";
import { firstInvalidUtf8 } from "../utf8.ts";

/**
 * The documents at `path`: one for a file; for a directory one for each `.txt` file in it, ordered by
 * name (by UTF-16 code unit, the same on every machine), without those of its subdirectories. A byte
 * order mark at the start is dropped. Refuses, in a line that has the path, what is missing or
 * unreadable, empty, or no UTF-8.
 */
export async function readTextDocuments(path: string): Promise<Document[]> {
  const info = await reading(path, stat(path));
  if (!info.isDirectory()) return [await readDocument(path)];
  const entries = await reading(path, readdir(path, { withFileTypes: true }));
  const names = entries
    .filter((entry) => !entry.isDirectory() && entry.name.endsWith(".txt"))
    .map((entry) => entry.name)
    .sort((a, b) => (a < b ? -1 : 1));
  if (names.length === 0) {
    throw new TriremeError(
      "DATA",
      `${path}: the directory has no .txt file; give a text file, or a directory of .txt files`,
    );
  }
  // One after the other: memory holds the bytes of one file besides the texts.
  const documents: Document[] = [];
  for (const name of names) documents.push(await readDocument(join(path, name)));
  return documents;
}

/** The document in a file of plain text. */
export async function readDocument(path: string): Promise<Document> {
  return textDocument(path, await reading(path, readFile(path)));
}

/** The document that `bytes`, the content of `path`, are; refuses what is no text. */
export function textDocument(path: string, bytes: Uint8Array): Document {
  if (bytes.length === 0)
    throw new TriremeError("DATA", `${path}: the file is empty; there is no text to read`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text === "") {
      throw new TriremeError("DATA", `${path}: the file has a byte order mark and nothing else`);
    }
    return { name: path, text };
  } catch (cause) {
    if (cause instanceof TriremeError) throw cause;
    const at = firstInvalidUtf8(bytes);
    if (at === -1) {
      throw new TriremeError(
        "DATA",
        `${path}: ${bytes.length} bytes are more than one string holds; split it into a directory of .txt files`,
        { cause },
      );
    }
    const byte = bytes[at]?.toString(16).padStart(2, "0");
    throw new TriremeError(
      "DATA",
      `${path}: not UTF-8 text: byte 0x${byte} at offset ${at}; convert it, for example with iconv`,
      { cause },
    );
  }
}

/** The result of a file operation, its failure as one line with the path. */
export async function reading<T>(path: string, operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const reasons: Readonly<Record<string, string>> = {
      ENOENT: "no such file or directory",
      ENOTDIR: "a part of the path is not a directory",
      EACCES: "permission denied",
      EPERM: "permission denied",
      ERR_FS_FILE_TOO_LARGE: "larger than 2 GiB; split it into a directory of .txt files",
    };
    const reason = reasons[code] ?? (cause instanceof Error ? cause.message : String(cause));
    throw new TriremeError("DATA", `${path}: ${reason}`, { cause });
  }
}
