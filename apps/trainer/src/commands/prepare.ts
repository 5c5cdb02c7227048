/** `trireme prepare`: texts to Megatron's token files, once, for all runs on them. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { formatBytes, formatCount, formatSeconds } from "@trireme/core";
import { type Tokenizer, byteTokenizer, characterTokenizer } from "@trireme/dataloader";
import {
  type Corpus,
  type PrepareReport,
  prepareTokens,
  readCorpus,
} from "@trireme/dataloader/node";
import { huggingFaceTokenizer, tiktokenEncoding } from "@trireme/dataloader/tokenizer";
import { InputError } from "../input-error.ts";
import type { PrepareArguments } from "../prepare-arguments.ts";
import { fields, heading } from "../report/fields.ts";
import { PrepareBar } from "../report/prepare-bar.ts";
import type { Terminal } from "../terminal.ts";
import type { Interruption } from "./train.ts";

/**
 * Tokenises and prints what came of it.
 * @returns false when it was stopped; the same command goes on from there.
 */
export async function prepareCommand(
  args: PrepareArguments,
  terminal: Terminal,
  interruption: Pick<Interruption, "signal">,
  now: () => number,
): Promise<boolean> {
  const corpus = await readCorpus(args.paths, { field: args.field });
  const tokenizer = await tokenizerOf(args.tokenizer, corpus);
  const bar = new PrepareBar(terminal, corpus.bytes, now);
  const start = now();
  let report: PrepareReport;
  try {
    report = await prepareTokens({
      documents: corpus,
      tokenizer,
      prefix: args.out,
      signal: interruption.signal,
      onProgress: (progress) => {
        bar.show(corpus.bytesRead, progress.tokens);
      },
      flushBytes: 2 ** 22,
      ...(args.end === undefined ? {} : { endOfDocument: args.end }),
      ...(args.workers === undefined ? {} : { workers: args.workers }),
    });
  } catch (error) {
    bar.end();
    if (!interruption.signal.aborted) throw error;
    terminal.error(`stopped; the same command goes on from here\n`);
    return false;
  }
  bar.end();
  const seconds = now() - start;
  const { documents, tokens, bytes, indexBytes, textBytes, resumed } = report;
  if (args.json) {
    terminal.out(`${JSON.stringify({ prefix: args.out, ...report, seconds }, undefined, 2)}\n`);
    return true;
  }
  const done = resumed === 0 ? "" : `, ${formatCount(resumed)} of them before`;
  terminal.out(heading(terminal, `${args.out}.bin, ${args.out}.idx`).trimStart());
  terminal.out(
    fields(terminal, [
      {
        label: "documents",
        value: formatCount(documents),
        note: `of ${corpus.files.length} files${done}`,
      },
      {
        label: "tokens",
        value: formatCount(tokens),
        note: `of ${formatCount(tokenizer.vocabulary)}`,
      },
      { label: "text", value: formatBytes(textBytes), note: "as UTF-8" },
      {
        label: "on disk",
        value: formatBytes(bytes),
        note: `index ${formatBytes(indexBytes)}`,
      },
      {
        label: "time",
        value: formatSeconds(seconds),
        note: `${formatCount(tokens / seconds)} tokens/s`,
      },
    ]),
  );
  return true;
}

/** By name, or from a tokenizer.json. */
async function tokenizerOf(name: string, corpus: Corpus): Promise<Tokenizer> {
  if (name === "byte") return byteTokenizer();
  if (name === "character") {
    // The vocabulary is that of all texts, which takes a pass over them.
    const seen = new Set<string>();
    for await (const { text } of corpus) for (const character of text) seen.add(character);
    return characterTokenizer([...seen]);
  }
  if (!name.endsWith(".json")) return await tiktokenEncoding(name);
  if (!existsSync(name)) throw new InputError([`${name}: no such file`]);
  const text = await readFile(name, "utf8");
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new InputError([`${name}: not JSON: ${cause instanceof Error ? cause.message : ""}`]);
  }
  return await huggingFaceTokenizer(json);
}
