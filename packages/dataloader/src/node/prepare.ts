/**
 * Text to Megatron's `.bin` and `.idx`, on as many threads as wanted, with the same bytes from any
 * number of them: batches of documents are tokenised in parallel and written in their order. Memory
 * does not grow with the corpus but for 4 bytes a document. Progress reaches the disk in steps, so that
 * a run that was stopped or killed anywhere goes on where it was and ends with the same bytes.
 */
import { availableParallelism } from "node:os";
import { TriremeError } from "@trireme/core";
import type { Document } from "../document.ts";
import { fingerprintTexts } from "../fingerprint.ts";
import { tokenTypeFor, tokenWidth } from "../token-type.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { unlessAborted } from "../unless-aborted.ts";
import { PartialFiles } from "./partial-files.ts";
import {
  type TextBatch,
  type TokenBatch,
  type TokenLayout,
  tokenizeBatch,
} from "./tokenize-batch.ts";
import { TokenizerThreads } from "./tokenizer-threads.ts";

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
  /**
   * Threads that tokenise; 0 for the calling one. By default the calling thread does the first million
   * characters, and if there are more, as many threads as the machine runs at once the rest. A tokenizer
   * of your own (one that `loadTokenizer` does not restore) needs 0.
   */
  readonly workers?: number;
}

/** How far it is. */
export interface PrepareProgress {
  readonly documents: number;
  readonly tokens: number;
  /** Bytes of the `.bin` so far. */
  readonly bytes: number;
  /** Bytes of the texts as UTF-8. */
  readonly textBytes: number;
}

/** What came of it: what went in (`textBytes`) against what came out (`bytes`, `indexBytes`). */
export interface PrepareReport extends PrepareProgress {
  /** Bytes of the `.idx`. */
  readonly indexBytes: number;
  /** Documents that an earlier, stopped run had done. */
  readonly resumed: number;
}

const batchCharacters = 2 ** 20;

/** Tokenises documents into files. */
export async function prepareTokens(options: PrepareOptions): Promise<PrepareReport> {
  const { tokenizer, prefix, endOfDocument, signal, flushBytes = 2 ** 24 } = options;
  const { workers = availableParallelism() } = options;
  const before = options.workers === undefined ? batchCharacters : 0;
  if (!Number.isInteger(workers) || workers < 0) {
    throw new TriremeError("PREPARE", `workers ${workers}; use 0 or a positive integer`);
  }
  if (!(flushBytes > 0))
    throw new TriremeError("PREPARE", `flushBytes ${flushBytes} is not positive`);
  const vocabulary = tokenizer.vocabulary;
  if (
    endOfDocument !== undefined &&
    !(Number.isInteger(endOfDocument) && endOfDocument >= 0 && endOfDocument < vocabulary)
  ) {
    throw new TriremeError(
      "PREPARE",
      `endOfDocument ${endOfDocument} is outside the vocabulary: ids are 0..${vocabulary - 1}`,
    );
  }
  const layout: TokenLayout = { type: tokenTypeFor(vocabulary), endOfDocument };
  const json: unknown = JSON.parse(JSON.stringify(tokenizer));
  const settings = fingerprintTexts([JSON.stringify(json), layout.type, String(endOfDocument)]);
  const files = await PartialFiles.open(prefix, settings);
  const threads = new TokenizerThreads({ tokenizer: json, layout }, Math.max(1, workers));
  try {
    const resumed = files.stored.documents;
    const writer = new Writer(files, layout, { ...options, flushBytes });
    const here = async (batch: TextBatch): Promise<TokenBatch> =>
      tokenizeBatch(tokenizer, layout, batch);
    const onThread = (batch: TextBatch): Promise<TokenBatch> => threads.tokenize(batch);

    let characters = 0;
    // In order of the documents: batches that are being tokenised.
    const pending: { readonly names: readonly string[]; readonly tokens: Promise<TokenBatch> }[] =
      [];
    const write = async (most: number): Promise<void> => {
      while (pending.length > most) {
        const { names, tokens } = pending.shift()!;
        await writer.add(names, await unlessAborted(tokens, signal));
      }
    };
    for await (const batch of batches(
      untilAborted(options.documents, signal),
      resumed,
      Math.min(batchCharacters, flushBytes / 2),
    )) {
      signal?.throwIfAborted();
      const alone = workers === 0 || characters < before;
      characters += batch.characters;
      const tokens = alone ? here(batch) : onThread(batch);
      // Told when it is its turn.
      tokens.catch(() => undefined);
      pending.push({ names: batch.names, tokens });
      await write(alone ? 0 : 2 * workers);
    }
    await write(0);
    return { ...(await writer.finish()), resumed };
  } finally {
    await threads.stop();
    await files.close();
  }
}

interface NamedBatch extends TextBatch {
  readonly names: readonly string[];
  readonly characters: number;
}

/** The documents; where one does not come, the signal does not wait for it. */
async function* untilAborted(
  documents: Iterable<Document> | AsyncIterable<Document>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Document, void, undefined> {
  if (signal === undefined) return yield* documents;
  const reading = (async function* () {
    yield* documents;
  })();
  try {
    for (;;) {
      const next = await unlessAborted(reading.next(), signal);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Ends when what it waits for has come; nobody waits for that.
    reading.return().catch(() => undefined);
  }
}

/** Documents in batches; none has documents of both sides of `resumed`. */
async function* batches(
  documents: Iterable<Document> | AsyncIterable<Document>,
  resumed: number,
  characters: number,
): AsyncGenerator<NamedBatch> {
  let names: string[] = [];
  let texts: string[] = [];
  let size = 0;
  let seen = 0;
  const take = (): NamedBatch => {
    const batch = { names, texts, tokens: seen > resumed, characters: size };
    [names, texts, size] = [[], [], 0];
    return batch;
  };
  for await (const { name, text } of documents) {
    if (texts.length > 0 && (size >= characters || seen === resumed)) yield take();
    seen++;
    names.push(name);
    texts.push(text);
    // A name, a length and a print are kept of an empty text too.
    size += text.length + 16;
  }
  if (texts.length > 0) yield take();
}

/** Takes the tokens of documents in their order and writes them in large steps. */
class Writer {
  readonly #files: PartialFiles;
  readonly #layout: TokenLayout;
  readonly #options: PrepareOptions & { readonly flushBytes: number };
  readonly #resumed: number;
  #parts: Uint8Array[] = [];
  #lengths: number[] = [];
  #held = 0;
  #seen = 0;
  #chain = "";
  #tokens: number;
  #textBytes: number;

  constructor(
    files: PartialFiles,
    layout: TokenLayout,
    options: PrepareOptions & { readonly flushBytes: number },
  ) {
    this.#files = files;
    this.#layout = layout;
    this.#options = options;
    this.#resumed = files.stored.documents;
    this.#tokens = files.stored.tokens;
    this.#textBytes = files.stored.textBytes;
  }

  async add(names: readonly string[], batch: TokenBatch): Promise<void> {
    const { signal, flushBytes, prefix } = this.#options;
    const width = tokenWidth(this.#layout.type);
    let at = 0;
    for (const [i, name] of names.entries()) {
      signal?.throwIfAborted();
      this.#chain = fingerprintTexts([this.#chain, name, batch.prints[i]!]);
      this.#seen++;
      if (this.#seen <= this.#resumed) {
        if (this.#seen === this.#resumed && this.#chain !== this.#files.stored.chain) {
          throw new TriremeError(
            "PREPARE",
            `${prefix}: the first ${this.#seen} documents are not those that the stopped run had; remove ${prefix}.partial.* to start anew`,
          );
        }
        continue;
      }
      if (this.#files.stored.finished) {
        throw new TriremeError(
          "PREPARE",
          `${prefix}: more documents than the ${this.#resumed} that the stopped run had; remove ${prefix}.partial.* to start anew`,
        );
      }
      const length = batch.lengths[i]!;
      const part = batch.bytes.subarray(at, at + width * length);
      at += part.length;
      this.#parts.push(part);
      this.#lengths.push(length);
      this.#held += part.length;
      this.#tokens += length;
      this.#textBytes += batch.textBytes[i]!;
      if (this.#held >= flushBytes) await this.#flush();
    }
  }

  async finish(): Promise<Omit<PrepareReport, "resumed">> {
    const { prefix } = this.#options;
    if (this.#seen < this.#resumed) {
      throw new TriremeError(
        "PREPARE",
        `${prefix}: ${this.#seen} documents, but the stopped run had done ${this.#resumed}; remove ${prefix}.partial.* to start anew`,
      );
    }
    const progress = await this.#flush();
    return { ...progress, indexBytes: await this.#files.finish(this.#layout.type) };
  }

  async #flush(): Promise<PrepareProgress> {
    const { documents, bytes } = this.#files.stored;
    const progress = {
      documents: documents + this.#lengths.length,
      tokens: this.#tokens,
      bytes: bytes + this.#held,
      textBytes: this.#textBytes,
    };
    if (!this.#files.stored.finished) {
      await this.#files.append(this.#parts, Int32Array.from(this.#lengths), {
        ...progress,
        chain: this.#chain,
      });
    }
    this.#parts = [];
    this.#lengths = [];
    this.#held = 0;
    this.#options.onProgress?.(progress);
    return progress;
  }
}
