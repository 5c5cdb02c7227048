/**
 * Chakra execution traces (MLCommons; schema/protobuf/et_def.proto of mlcommons/chakra): the operations of
 * one rank and what each waits for, as a row of messages, each behind its length: one of metadata, then
 * the nodes. ASTRA-sim 2 reads a file `<prefix>.<rank>.et` for each rank.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { type Reader, type Writer, reader, wireType, writer } from "./wire.ts";

/** Kinds of nodes that are simulated, by their numbers in the schema. */
export const chakraNodeTypes = {
  load: 2,
  store: 3,
  compute: 4,
  send: 5,
  receive: 6,
  collective: 7,
} as const;

/** Kinds of collectives, by their numbers in the schema. */
export const chakraCollectives = {
  "all-reduce": 0,
  "all-gather": 2,
  broadcast: 5,
  "all-to-all": 6,
  "reduce-scatter": 7,
  barrier: 9,
} as const;

/** A value of an attribute. */
export type ChakraValue = number | boolean | string | readonly boolean[];

/** One operation of a rank. */
export interface ChakraNode {
  readonly id: number;
  readonly name: string;
  /** Number in the schema; see `chakraNodeTypes`. */
  readonly type: number;
  /** Nodes of the rank that must be over first. */
  readonly controlDependencies: readonly number[];
  readonly dataDependencies: readonly number[];
  /** Whole microseconds in the file; an exact time is in the attribute `seconds`, which others ignore. */
  readonly duration: Seconds;
  /** By name: `comm_type`, `comm_size`, `comm_src`, `comm_dst`, `comm_tag`, `pg_name`, `is_cpu_op`, … */
  readonly attributes: Readonly<Record<string, ChakraValue>>;
}

/** All operations of one rank. */
export interface ChakraTrace {
  readonly version: string;
  readonly nodes: readonly ChakraNode[];
}

/** The bytes of a rank's file. */
export function encodeChakra(trace: ChakraTrace): Uint8Array {
  const out = writer();
  out.bytes(writer().uint32(tag(1, wireType.LengthDelimited)).string(trace.version).finish());
  for (const node of trace.nodes) out.bytes(encodeNode(node));
  return out.finish();
}

/**
 * Reads a rank's file.
 * @throws TriremeError "CHAKRA" with the message's number where it is cut off or is none.
 */
export function decodeChakra(bytes: Uint8Array): ChakraTrace {
  const input = reader(bytes);
  const nodes: ChakraNode[] = [];
  let version = "";
  let message = 0;
  try {
    for (; input.pos < input.len; message++) {
      const body = reader(input.bytes());
      if (message === 0) version = decodeMetadata(body);
      else nodes.push(decodeNode(body));
    }
  } catch (cause) {
    if (cause instanceof TriremeError) throw cause;
    const at = message === 0 ? "metadata" : `node ${message - 1}`;
    throw new TriremeError("CHAKRA", `${at} of an execution trace cannot be read: file cut off?`, {
      cause,
    });
  }
  if (message === 0) throw new TriremeError("CHAKRA", "empty execution trace: it has no metadata");
  return { version, nodes };
}

function tag(field: number, type: number): number {
  return field * 8 + type;
}

function encodeNode(node: ChakraNode): Uint8Array {
  const out = writer();
  out.uint32(tag(1, wireType.Varint)).uint64(node.id);
  out.uint32(tag(2, wireType.LengthDelimited)).string(node.name);
  out.uint32(tag(3, wireType.Varint)).int32(node.type);
  for (const [field, list] of [
    [4, node.controlDependencies],
    [5, node.dataDependencies],
  ] as const) {
    if (list.length === 0) continue;
    out.uint32(tag(field, wireType.LengthDelimited)).fork();
    for (const id of list) out.uint64(id);
    out.join();
  }
  out.uint32(tag(7, wireType.Varint)).uint64(Math.round(node.duration * 1e6));
  for (const [name, value] of Object.entries(node.attributes)) {
    out.uint32(tag(10, wireType.LengthDelimited)).fork();
    out.uint32(tag(1, wireType.LengthDelimited)).string(name);
    encodeValue(out, name, value);
    out.join();
  }
  return out.finish();
}

/** Ranks and tags are 32-bit in readers, sizes and kinds 64-bit, times doubles. */
const narrow: ReadonlySet<string> = new Set(["comm_src", "comm_dst", "comm_tag"]);

function encodeValue(out: Writer, name: string, value: ChakraValue): void {
  if (typeof value === "string") out.uint32(tag(29, wireType.LengthDelimited)).string(value);
  else if (typeof value === "boolean") out.uint32(tag(27, wireType.Varint)).bool(value);
  else if (typeof value !== "number") {
    out.uint32(tag(28, wireType.LengthDelimited)).fork();
    out.uint32(tag(1, wireType.LengthDelimited)).fork();
    for (const one of value) out.bool(one);
    out.join();
    out.join();
  } else if (narrow.has(name)) out.uint32(tag(7, wireType.Varint)).int32(value);
  else if (Number.isSafeInteger(value)) out.uint32(tag(9, wireType.Varint)).int64(value);
  else out.uint32(tag(3, wireType.Bit64)).double(value);
}

function decodeMetadata(input: Reader): string {
  let version = "";
  while (input.pos < input.len) {
    const [field, type] = input.tag();
    if (field === 1) version = input.string();
    else input.skip(type);
  }
  return version;
}

function decodeNode(input: Reader): ChakraNode {
  let [id, type, micros, name] = [0, 0, 0, ""];
  const controlDependencies: number[] = [];
  const dataDependencies: number[] = [];
  const attributes: Record<string, ChakraValue> = {};
  while (input.pos < input.len) {
    const [field, wire] = input.tag();
    switch (field) {
      case 1:
        id = whole(input.uint64(), "id");
        break;
      case 2:
        name = input.string();
        break;
      case 3:
        type = input.int32();
        break;
      case 4:
      case 5: {
        const list = field === 4 ? controlDependencies : dataDependencies;
        if (wire === wireType.LengthDelimited) {
          const end = input.uint32() + input.pos;
          while (input.pos < end) list.push(whole(input.uint64(), "dependency"));
        } else list.push(whole(input.uint64(), "dependency"));
        break;
      }
      case 7:
        micros = whole(input.uint64(), "duration");
        break;
      case 10: {
        const found = decodeAttribute(reader(input.bytes()));
        if (found.value !== undefined) attributes[found.name] = found.value;
        break;
      }
      default:
        input.skip(wire);
    }
  }
  const exact = attributes["seconds"];
  const duration = typeof exact === "number" ? exact : micros / 1e6;
  return { id, name, type, controlDependencies, dataDependencies, duration, attributes };
}

function decodeAttribute(input: Reader): { name: string; value: ChakraValue | undefined } {
  let name = "";
  let value: ChakraValue | undefined;
  while (input.pos < input.len) {
    const [field, type] = input.tag();
    if (field === 1) name = input.string();
    else {
      const read = decoders[field];
      if (read === undefined) input.skip(type);
      else value = read(input);
    }
  }
  return { name, value };
}

/** Readers of the scalar members of an attribute's value, and of lists of booleans. */
const decoders: Readonly<Record<number, (input: Reader) => ChakraValue>> = {
  3: (input) => input.double(),
  5: (input) => input.float(),
  7: (input) => input.int32(),
  9: (input) => whole(input.int64(), "attribute"),
  11: (input) => input.uint32(),
  13: (input) => whole(input.uint64(), "attribute"),
  15: (input) => input.sint32(),
  17: (input) => whole(input.sint64(), "attribute"),
  19: (input) => input.fixed32(),
  21: (input) => whole(input.fixed64(), "attribute"),
  23: (input) => input.sfixed32(),
  25: (input) => whole(input.sfixed64(), "attribute"),
  27: (input) => input.bool(),
  28: (input) => booleans(reader(input.bytes())),
  29: (input) => input.string(),
};

function booleans(input: Reader): boolean[] {
  const list: boolean[] = [];
  while (input.pos < input.len) {
    const [, type] = input.tag();
    const end = type === wireType.LengthDelimited ? input.uint32() + input.pos : input.pos + 1;
    while (input.pos < end) list.push(input.bool());
  }
  return list;
}

function whole(value: bigint | string | number, what: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TriremeError("CHAKRA", `${what} ${value} of an execution trace is beyond 2^53`);
}
