/**
 * Models in several safetensors files with an index, in Hugging Face's form: each file up to a size,
 * `model-00001-of-00003.safetensors`, and `model.safetensors.index.json` saying which tensor is where.
 * Files are filled as huggingface_hub fills them: in the order given, a tensor above the size alone.
 */
import { TriremeError } from "@trireme/core";
import { tensorBytes } from "./dtype.ts";
import type { TensorInfo } from "./encode-safetensors.ts";
import { checkFileName } from "./file-name.ts";
import { type Json, parseStrictJson } from "./strict-json.ts";

/** Which tensor is in which file. */
export interface ShardIndex {
  /** Bytes of all tensors; undefined where an index does not say. */
  readonly totalSize: number | undefined;
  /** File by tensor. */
  readonly files: ReadonlyMap<string, string>;
}

/** Options of `planShards`. */
export interface ShardOptions {
  /** Bytes of tensors in a file; default 5 GB. */
  readonly maximum?: number;
  /** What names begin with; default "model". */
  readonly stem?: string;
}

/** Tensors by file. */
export interface ShardPlan {
  readonly files: readonly { readonly name: string; readonly tensors: readonly TensorInfo[] }[];
  /** To be written as `indexName`; undefined where one file, `model.safetensors`, holds all. */
  readonly index: ShardIndex | undefined;
  /** "model.safetensors.index.json". */
  readonly indexName: string;
}

/** Shares tensors out to files. Throws `CHECKPOINT` for options that make no sense. */
export function planShards(tensors: readonly TensorInfo[], options: ShardOptions = {}): ShardPlan {
  const { maximum = 5e9, stem = "model" } = options;
  checkFileName(stem);
  if (!Number.isSafeInteger(maximum) || maximum < 1) {
    throw new TriremeError("CHECKPOINT", `maximum ${maximum}: it is an integer of at least 1 byte`);
  }
  const shards: TensorInfo[][] = [];
  let open: TensorInfo[] = [];
  let openSize = 0;
  let totalSize = 0;
  for (const tensor of tensors) {
    const size = tensorBytes(tensor.name, tensor.dtype, tensor.shape);
    totalSize += size;
    if (size > maximum) {
      shards.push([tensor]);
      continue;
    }
    if (openSize + size > maximum) {
      shards.push(open);
      open = [];
      openSize = 0;
    }
    open.push(tensor);
    openSize += size;
  }
  if (open.length > 0 || shards.length === 0) shards.push(open);
  const count = shards.length;
  const number = (n: number): string => String(n).padStart(5, "0");
  const files = shards.map((list, i) => ({
    name:
      count === 1
        ? `${stem}.safetensors`
        : `${stem}-${number(i + 1)}-of-${number(count)}.safetensors`,
    tensors: list,
  }));
  const indexName = `${stem}.safetensors.index.json`;
  if (count === 1) return { files, index: undefined, indexName };
  const where = files.flatMap((file) => file.tensors.map(({ name }) => [name, file.name] as const));
  return { files, index: { totalSize, files: new Map(where) }, indexName };
}

/** The index as JSON, keys sorted, indented by 2: the bytes that Hugging Face's writers give. */
export function encodeShardIndex({ totalSize, files }: ShardIndex): Uint8Array<ArrayBuffer> {
  const total = totalSize === undefined ? "{}" : `{\n    "total_size": ${totalSize}\n  }`;
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = sorted.map(([name, file]) => `    ${escaped(name)}: ${escaped(file)}`);
  const map = lines.length === 0 ? "{}" : `{\n${lines.join(",\n")}\n  }`;
  return new TextEncoder().encode(`{\n  "metadata": ${total},\n  "weight_map": ${map}\n}\n`);
}

/** Reads an index. Throws `CHECKPOINT` for what is no index, or names a file outside its directory. */
export function parseShardIndex(bytes: Uint8Array): ShardIndex {
  const root = parse(bytes);
  const map = root instanceof Map ? root.get("weight_map") : undefined;
  if (!(root instanceof Map) || !(map instanceof Map))
    throw refuse('it has no object "weight_map"');
  const files = new Map<string, string>();
  for (const [name, file] of map) {
    if (typeof file !== "string") throw refuse(`tensor ${JSON.stringify(name)} has no file name`);
    checkFileName(file);
    files.set(name, file);
  }
  return { totalSize: totalOf(root.get("metadata")), files };
}

/** Refuses shards whose tensors are not those of the index: `CHECKPOINT` with tensor and file. */
export function checkShards(
  { files }: ShardIndex,
  shards: ReadonlyMap<string, readonly TensorInfo[]>,
): void {
  const held = new Map([...shards].map(([file, list]) => [file, new Set(list.map((t) => t.name))]));
  for (const [name, file] of files) {
    if (held.get(file)?.has(name) !== true) {
      const what = held.has(file) ? `${file} does not have it` : `there is no ${file}`;
      throw refuse(`it has tensor "${name}" in ${file}, but ${what}`);
    }
  }
  for (const [file, names] of held) {
    for (const name of names) {
      if (files.get(name) !== file) {
        throw refuse(
          `${file} has tensor "${name}", which the index has in ${files.get(name) ?? "no file"}`,
        );
      }
    }
  }
}

function totalOf(metadata: Json | undefined): number | undefined {
  if (!(metadata instanceof Map)) return undefined;
  const total: unknown = metadata.get("total_size");
  if (typeof total !== "object" || total === null || !("text" in total)) return undefined;
  // Some writers give a float: "13476839424.0".
  const value = Number(total.text);
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function parse(bytes: Uint8Array): Json {
  try {
    return parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("CHECKPOINT", `the index of shards is no strict JSON: ${why}`, {
      cause,
    });
  }
}

/** A JSON string of ASCII alone, as Python's json writes it. */
function escaped(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function refuse(reason: string): TriremeError {
  return new TriremeError("CHECKPOINT", `the index of shards is refused: ${reason}`);
}
