/** The data of a trace, call by call. */
import { openSync, readSync } from "node:fs";
import type { ElementType, Elements } from "@trireme/collectives";
import { type Bytes, TriremeError } from "@trireme/core";
import { shardTurns } from "./shard-turns.ts";
import { type CallEvent, type TraceShard, callName } from "./trace.ts";

/** So many numbers of a type in a buffer. */
function numbersIn(
  type: ElementType,
  buffer: ArrayBufferLike,
  offset: Bytes,
  count: number,
): Elements {
  if (type === "f32") return new Float32Array(buffer, offset, count);
  if (type === "i32") return new Int32Array(buffer, offset, count);
  return new Uint16Array(buffer, offset, count);
}

function elementBytes(type: ElementType): Bytes {
  return type === "bf16" ? 2 : 4;
}

/** What one rank gave, by call. */
export class ShardData {
  readonly #shard: TraceShard;
  readonly #calls = new Map<string, CallEvent>();
  readonly #file: number | undefined;

  constructor(shard: TraceShard) {
    this.#shard = shard;
    const { rank, data } = shard;
    this.#file = typeof data === "string" ? openSync(data, "r") : undefined;
    const { groups, turns } = shardTurns(shard);
    for (const { calls } of turns) {
      for (const call of calls) {
        const { name, members } = groups[call.group]!;
        this.#calls.set(callName(name, call, members.indexOf(rank)), call);
      }
    }
  }

  /**
   * The part for rank `taker` of the group of what this rank gave in a call, all of it where ranks get
   * the same. Throws `TRACE` where the call is not there, or its data was not kept.
   */
  part(name: string, taker: number, what: () => string): Elements {
    const call = this.#calls.get(name);
    if (call === undefined || call.offset < 0) {
      throw new TriremeError(
        "TRACE",
        `${what()} needs what rank ${this.#shard.rank} gave, which the trace ${call === undefined ? "has not" : "did not keep"}; record for these ranks`,
      );
    }
    const { type, offset, parts } = call;
    const size = elementBytes(type);
    const skipped = (parts ?? []).slice(0, taker).reduce((a, b) => a + b, 0);
    return this.#read(type, offset + skipped * size, parts?.[taker] ?? call.count);
  }

  #read(type: ElementType, offset: Bytes, count: number): Elements {
    const { data } = this.#shard;
    if (typeof data !== "string") return numbersIn(type, data, offset, count);
    const bytes = new Uint8Array(count * elementBytes(type));
    for (let at = 0; at < bytes.length;) {
      const read = readSync(this.#file!, bytes, at, bytes.length - at, offset + at);
      if (read === 0) {
        throw new TriremeError(
          "TRACE",
          `${data} ends at byte ${offset + at}; record the run again`,
        );
      }
      at += read;
    }
    return numbersIn(type, bytes.buffer, 0, count);
  }
}
