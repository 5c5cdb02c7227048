/**
 * Megatron's indexed dataset: `.bin` holds the tokens of all sequences end to end, `.idx` says how
 * long each is, where it starts, and which sequences make up a document. Layout of the index, all
 * little-endian: 9 bytes of magic, u64 version, u8 element type, u64 sequences, u64 entries of the
 * document index, i32 lengths, i64 pointers, i64 document index, i8 modes (multimodal only).
 * Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py, `_IndexWriter` and `_IndexReader`.
 */
import { TriremeError } from "@trireme/core";
import { FormatError } from "./format-error.ts";
import { type TokenType, tokenTypeCode, tokenTypeOf, tokenWidth } from "./token-type.ts";

const magic = "MMIDIDX\0\0";
const version = 1;
const headerBytes = 34;

/** What an index file says. */
export interface MegatronIndex {
  readonly type: TokenType;
  /** Tokens of each sequence. */
  readonly lengths: Int32Array;
  /**
   * Where documents begin, as sequence numbers: document d is sequences documents[d] up to
   * documents[d + 1]. Starts with 0, ends with the number of sequences.
   */
  readonly documents: Float64Array;
  /** One byte per sequence in multimodal files: what kind of data it is. */
  readonly modes?: Int8Array;
}

/** The bytes of an index file. */
export function encodeMegatronIndex(index: MegatronIndex): Uint8Array<ArrayBuffer> {
  const { type, lengths, documents, modes } = index;
  const wrong = faultOf(index);
  if (wrong !== undefined)
    throw new TriremeError("DATASET", `an index that makes no sense: ${wrong}`);
  const size =
    headerBytes +
    12 * lengths.length +
    8 * documents.length +
    (modes === undefined ? 0 : lengths.length);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < magic.length; i++) bytes[i] = magic.charCodeAt(i);
  setCount(view, 9, version);
  bytes[17] = tokenTypeCode(type);
  setCount(view, 18, lengths.length);
  setCount(view, 26, documents.length);
  let at = headerBytes;
  for (const length of lengths) {
    view.setInt32(at, length, true);
    at += 4;
  }
  let pointer = 0;
  for (const length of lengths) {
    setCount(view, at, pointer);
    pointer += length * tokenWidth(type);
    at += 8;
  }
  for (const document of documents) {
    setCount(view, at, document);
    at += 8;
  }
  if (modes !== undefined)
    bytes.set(new Uint8Array(modes.buffer, modes.byteOffset, modes.length), at);
  return bytes;
}

/**
 * Reads an index file and checks it whole: magic, version, element type, exact length, lengths,
 * pointers that follow from the lengths, a document index that ascends from 0 to the number of
 * sequences, and, where `dataBytes` (the size of the `.bin` file) is given, that the two agree.
 */
export function decodeMegatronIndex(
  name: string,
  bytes: Uint8Array,
  dataBytes?: number,
): MegatronIndex {
  const fail = (offset: number | undefined, reason: string): never => {
    throw new FormatError(name, offset, reason);
  };
  if (bytes.byteLength < headerBytes) {
    fail(undefined, `${bytes.byteLength} bytes; the header of an index alone has ${headerBytes}`);
  }
  for (let i = 0; i < magic.length; i++) {
    if (bytes[i] !== magic.charCodeAt(i))
      fail(i, 'no Megatron index: it does not start with "MMIDIDX"');
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = count(view, 9);
  if (found !== version) fail(9, `version ${found}; only version ${version} is known`);
  const type =
    tokenTypeOf(bytes[17]!) ?? fail(17, `element type ${bytes[17]}; the types are 1 to 8`);
  const sequences = count(view, 18) ?? fail(18, "more than 2^53-1 sequences");
  const entries = count(view, 26) ?? fail(26, "more than 2^53-1 documents");
  const plain = headerBytes + 12 * sequences + 8 * entries;
  const size = bytes.byteLength;
  if (size !== plain && size !== plain + sequences) {
    const cut = size < plain ? "cut short" : "too long";
    fail(
      undefined,
      `${sequences} sequences and ${entries} document entries need ${plain} bytes (${plain + sequences} with modes); the file has ${size}: it is ${cut}`,
    );
  }

  const lengths = new Int32Array(sequences);
  for (let i = 0; i < sequences; i++) lengths[i] = view.getInt32(headerBytes + 4 * i, true);
  const pointersAt = headerBytes + 4 * sequences;
  const width = tokenWidth(type);
  let expected = 0;
  for (let i = 0; i < sequences; i++) {
    const pointer = count(view, pointersAt + 8 * i);
    if (lengths[i]! < 0) fail(headerBytes + 4 * i, `sequence ${i} has length ${lengths[i]}`);
    if (pointer !== expected) {
      fail(
        pointersAt + 8 * i,
        `sequence ${i} starts at ${pointer ?? "an unreadable place"}; those before it end at ${expected}`,
      );
    }
    expected += lengths[i]! * width;
  }
  if (dataBytes !== undefined && dataBytes !== expected) {
    fail(undefined, `its sequences have ${expected} bytes, the data file has ${dataBytes}`);
  }
  const documentsAt = pointersAt + 8 * sequences;
  const documents = new Float64Array(entries);
  for (let i = 0; i < entries; i++) {
    documents[i] =
      count(view, documentsAt + 8 * i) ??
      fail(documentsAt + 8 * i, `document entry ${i} is no count`);
  }
  const modes =
    size === plain || sequences === 0 ? undefined : new Int8Array(bytes.slice(plain).buffer);
  const index: MegatronIndex = {
    type,
    lengths,
    documents,
    ...(modes === undefined ? {} : { modes }),
  };
  const wrong = faultOf(index);
  if (wrong !== undefined) fail(documentsAt, wrong);
  return index;
}

function faultOf({ lengths, documents, modes }: MegatronIndex): string | undefined {
  const sequences = lengths.length;
  const negative = lengths.findIndex((length) => length < 0);
  if (negative !== -1) return `sequence ${negative} has length ${lengths[negative]}`;
  if (documents[0] !== 0)
    return `the document index starts with ${documents[0] ?? "nothing"}; it must start with 0`;
  if (documents.at(-1) !== sequences) {
    return `the document index ends with ${documents.at(-1)}; it must end with the number of sequences, ${sequences}`;
  }
  const falling = documents.findIndex((start, d) => d > 0 && !(start >= documents[d - 1]!));
  if (falling !== -1)
    return `document entry ${falling} is ${documents[falling]}, below the one before it`;
  if (modes !== undefined && modes.length !== sequences) {
    return `${modes.length} modes for ${sequences} sequences`;
  }
  return undefined;
}

/** A 64-bit count; undefined where it is negative or above 2⁵³ − 1. */
function count(view: DataView, offset: number): number | undefined {
  const high = view.getUint32(offset + 4, true);
  return high < 2 ** 21 ? high * 2 ** 32 + view.getUint32(offset, true) : undefined;
}

function setCount(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value % 2 ** 32, true);
  view.setUint32(offset + 4, Math.floor(value / 2 ** 32), true);
}
