/**
 * Text to Megatron's `.bin` and `.idx`, one document at a time: memory does not grow with the corpus
 * but for 4 bytes a document. Progress reaches the disk in steps, data before what counts it, so that a
 * run that was stopped anywhere goes on where it was and ends with the same bytes.
 */
import { type FileHandle, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { TriremeError } from "@trireme/core";
import type { Document } from "../document.ts";
import { fingerprintTexts } from "../fingerprint.ts";
import { encodeMegatronIndex } from "../megatron-index.ts";
import { type TokenType, encodeTokens, tokenTypeFor } from "../token-type.ts";
import type { Tokenizer } from "../tokenizer.ts";

/** What to prepare, and where. */
export interface PrepareOptions {
  /** The same documents in the same order when a stopped run is taken up again. */
  readonly documents: Iterable<Document> | AsyncIterable<Document>;
  readonly tokenizer: Tokenizer;
  /** Writes `<prefix>.bin` and `<prefix>.idx`; while it runs, `<prefix>.partial.*`. */
  readonly prefix: string;
  /** A token put behind each document. */
  readonly endOfDocument?: number;
  /** Called each time progress has reached the disk. */
  readonly onProgress?: (progress: PrepareProgress) => void;
  /** Stops between two documents, progress kept; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Bytes of tokens between two times that progress reaches the disk. Default 16 MiB. */
  readonly flushBytes?: number;
}

/** How far it is. */
export interface PrepareProgress {
  readonly documents: number;
  readonly tokens: number;
  /** Bytes of the `.bin` so far. */
  readonly bytes: number;
}

/** What came of it. */
export interface PrepareReport extends PrepareProgress {
  /** Documents that an earlier, stopped run had done. */
  readonly resumed: number;
}

interface Stored extends PrepareProgress {
  readonly version: 1;
  /** What the tokens depend on besides the documents. */
  readonly settings: string;
  /** Fingerprint of the documents done, one upon the other. */
  readonly chain: string;
}

/** Tokenises documents into files. */
export async function prepareTokens(options: PrepareOptions): Promise<PrepareReport> {
  const {
    documents,
    tokenizer,
    prefix,
    endOfDocument,
    onProgress,
    signal,
    flushBytes = 2 ** 24,
  } = options;
  if (
    endOfDocument !== undefined &&
    !(Number.isInteger(endOfDocument) && endOfDocument >= 0 && endOfDocument < tokenizer.vocabulary)
  ) {
    throw new TriremeError(
      "PREPARE",
      `endOfDocument ${endOfDocument} is outside the vocabulary: ids are 0..${tokenizer.vocabulary - 1}`,
    );
  }
  const type = tokenTypeFor(tokenizer.vocabulary);
  const settings = fingerprintTexts([JSON.stringify(tokenizer), type, String(endOfDocument)]);
  const files = await PartialFiles.open(prefix, settings);
  try {
    const { stored } = files;
    const writer = new Writer(files, type, flushBytes, onProgress);
    let seen = 0;
    let chain = "";
    for await (const document of documents) {
      signal?.throwIfAborted();
      chain = fingerprintTexts([chain, document.name, document.text]);
      seen++;
      if (seen <= stored.documents) {
        if (seen === stored.documents && chain !== stored.chain) {
          throw new TriremeError(
            "PREPARE",
            `${prefix}: the first ${seen} documents are not those that the stopped run had; remove ${prefix}.partial.* to start anew`,
          );
        }
        continue;
      }
      const tokens = tokenizer.encode(document.text);
      await writer.add(tokens, endOfDocument, chain);
    }
    if (seen < stored.documents) {
      throw new TriremeError(
        "PREPARE",
        `${prefix}: ${seen} documents, but the stopped run had done ${stored.documents}; remove ${prefix}.partial.* to start anew`,
      );
    }
    const progress = await writer.flush();
    await files.finish(type, progress.documents);
    return { ...progress, resumed: stored.documents };
  } finally {
    await files.close();
  }
}

/** Collects the tokens of documents and writes them in large steps. */
class Writer {
  readonly #files: PartialFiles;
  readonly #type: TokenType;
  readonly #flushBytes: number;
  readonly #onProgress: ((progress: PrepareProgress) => void) | undefined;
  #parts: Uint8Array[] = [];
  #lengths: number[] = [];
  #held = 0;
  #tokens: number;
  #chain: string;

  constructor(
    files: PartialFiles,
    type: TokenType,
    flushBytes: number,
    onProgress?: (progress: PrepareProgress) => void,
  ) {
    this.#files = files;
    this.#type = type;
    this.#flushBytes = flushBytes;
    this.#onProgress = onProgress;
    this.#tokens = files.stored.tokens;
    this.#chain = files.stored.chain;
  }

  async add(tokens: ArrayLike<number>, end: number | undefined, chain: string): Promise<void> {
    const parts = [tokens, ...(end === undefined ? [] : [[end]])].map((part) =>
      encodeTokens(this.#type, part),
    );
    const length = tokens.length + (end === undefined ? 0 : 1);
    if (length > 0x7fffffff)
      throw new TriremeError(
        "PREPARE",
        `a document of ${length} tokens; an index counts them in 31 bits`,
      );
    this.#parts.push(...parts);
    this.#lengths.push(length);
    this.#held += parts.reduce((sum, part) => sum + part.length, 0);
    this.#tokens += length;
    this.#chain = chain;
    if (this.#held >= this.#flushBytes) await this.flush();
  }

  async flush(): Promise<PrepareProgress> {
    const { documents, bytes } = this.#files.stored;
    const progress = {
      documents: documents + this.#lengths.length,
      tokens: this.#tokens,
      bytes: bytes + this.#held,
    };
    await this.#files.append(this.#parts, Int32Array.from(this.#lengths), {
      ...progress,
      chain: this.#chain,
    });
    this.#parts = [];
    this.#lengths = [];
    this.#held = 0;
    this.#onProgress?.(progress);
    return progress;
  }
}

/** The files of a run that is not finished: tokens, lengths, and what of them counts. */
class PartialFiles {
  readonly #prefix: string;
  readonly #tokens: FileHandle;
  readonly #lengths: FileHandle;
  stored: Stored;

  private constructor(prefix: string, tokens: FileHandle, lengths: FileHandle, stored: Stored) {
    this.#prefix = prefix;
    this.#tokens = tokens;
    this.#lengths = lengths;
    this.stored = stored;
  }

  static async open(prefix: string, settings: string): Promise<PartialFiles> {
    const fresh: Stored = { version: 1, settings, chain: "", documents: 0, tokens: 0, bytes: 0 };
    const text = await readFile(`${prefix}.partial.json`, "utf8").catch(() => undefined);
    const stored: Stored = text === undefined ? fresh : JSON.parse(text);
    if (stored.version !== 1 || stored.settings !== settings) {
      throw new TriremeError(
        "PREPARE",
        `${prefix}: the stopped run had another tokenizer or other settings; remove ${prefix}.partial.* to start anew`,
      );
    }
    // Opened without truncation, then cut to what counts: what a crash left behind it is dropped.
    const tokens = await open(`${prefix}.partial.bin`, "a+").catch((cause: unknown) => {
      throw new TriremeError(
        "PREPARE",
        `${prefix}.partial.bin: cannot be written; does its directory exist?`,
        { cause },
      );
    });
    const lengths = await open(`${prefix}.partial.lengths`, "a+");
    await tokens.truncate(stored.bytes);
    await lengths.truncate(4 * stored.documents);
    return new PartialFiles(prefix, tokens, lengths, stored);
  }

  async append(
    parts: readonly Uint8Array[],
    lengths: Int32Array<ArrayBuffer>,
    now: Omit<Stored, "version" | "settings">,
  ): Promise<void> {
    for (const part of parts) await this.#tokens.appendFile(part);
    await this.#lengths.appendFile(new Uint8Array(lengths.buffer));
    await this.#tokens.datasync();
    await this.#lengths.datasync();
    this.stored = { ...this.stored, ...now };
    const path = `${this.#prefix}.partial.json`;
    await writeFile(`${path}.tmp`, JSON.stringify(this.stored), { flush: true });
    await rename(`${path}.tmp`, path);
  }

  /** The index, then the tokens under their own name: a `.bin` that is there is whole. */
  async finish(type: TokenType, documents: number): Promise<void> {
    const bytes = await readFile(`${this.#prefix}.partial.lengths`);
    const lengths = new Int32Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + 4 * documents),
    );
    const starts = Float64Array.from({ length: documents + 1 }, (_, i) => i);
    await writeFile(
      `${this.#prefix}.idx`,
      encodeMegatronIndex({ type, lengths, documents: starts }),
      { flush: true },
    );
    await rename(`${this.#prefix}.partial.bin`, `${this.#prefix}.bin`);
    await rm(`${this.#prefix}.partial.json`);
    await rm(`${this.#prefix}.partial.lengths`);
  }

  async close(): Promise<void> {
    await this.#tokens.close();
    await this.#lengths.close();
  }
}
