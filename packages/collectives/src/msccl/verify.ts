/**
 * Proves an MSCCL program: runs all thread blocks over bounded connections, following which GPU's
 * data is in every chunk. A block that can never go on is a deadlock; a step that touches a chunk
 * another block touches without an order between the two (by dependencies and messages, kept as
 * vector clocks) is a race, even where this run happened to come out right.
 */
import { type MscclProgram, type MscclStep, reads, receives, sends, writes } from "./program.ts";

/** The outcome of `verifyMsccl`. */
export type MscclVerification =
  | { readonly ok: true; readonly steps: number; readonly sent: readonly number[] }
  | { readonly ok: false; readonly reason: string };

/** Messages that a connection holds before its sender waits (NCCL_STEPS). */
const slots = 8;

/** Data of one chunk: which input chunk, and of which GPUs (a bit each). */
interface Value {
  readonly chunk: number;
  readonly gpus: bigint;
}

interface Touch {
  readonly block: number;
  readonly step: number;
}

interface Cell {
  value: Value | undefined;
  writer: Touch | undefined;
  readers: Touch[];
}

interface Packet {
  readonly values: readonly Value[];
  readonly clock: Int32Array;
}

class Fault extends Error {}

/** Verifies a program that `checkMsccl` accepts. */
export function verifyMsccl(program: MscclProgram): MscclVerification {
  try {
    return new Run(program).finish();
  } catch (error) {
    if (error instanceof Fault) return { ok: false, reason: error.message };
    throw error;
  }
}

class Run {
  readonly #program: MscclProgram;
  readonly #cells: Map<string, Cell>[];
  /** First number of each GPU's blocks among all. */
  readonly #firstBlock: number[] = [];
  readonly #at: number[] = [];
  readonly #clocks: Int32Array[] = [];
  /** Clock after each step that others wait for. */
  readonly #after = new Map<string, Int32Array>();
  readonly #connections = new Map<string, Packet[]>();
  readonly #sent: number[];

  constructor(program: MscclProgram) {
    this.#program = program;
    let blocks = 0;
    for (const gpu of program.gpus) {
      this.#firstBlock.push(blocks);
      blocks += gpu.blocks.length;
    }
    for (let b = 0; b < blocks; b++) {
      this.#at.push(0);
      this.#clocks.push(new Int32Array(blocks).fill(-1));
    }
    this.#sent = program.gpus.map(() => 0);
    this.#cells = program.gpus.map(() => new Map());
    program.gpus.forEach((gpu, rank) => {
      for (let chunk = 0; chunk < gpu.input; chunk++) {
        this.#cell(rank, "i", chunk).value = { chunk, gpus: 1n << BigInt(rank) };
      }
    });
  }

  finish(): MscclVerification {
    let steps = 0;
    let moved = true;
    while (moved) {
      moved = false;
      this.#program.gpus.forEach((gpu, rank) => {
        gpu.blocks.forEach((block, b) => {
          const number = this.#firstBlock[rank]! + b;
          while (this.#at[number]! < block.steps.length && this.#step(rank, b)) {
            moved = true;
            steps++;
          }
        });
      });
    }
    this.#program.gpus.forEach((gpu, rank) => {
      gpu.blocks.forEach((block, b) => {
        const at = this.#at[this.#firstBlock[rank]! + b]!;
        if (at < block.steps.length) {
          const { type, dependBlock, dependStep } = block.steps[at]!;
          const waits =
            dependBlock >= 0 && !this.#after.has(`${rank} ${dependBlock} ${dependStep}`)
              ? `tb ${dependBlock} step ${dependStep}`
              : receives(type) && this.#connection(block.receive, rank, block.channel).length === 0
                ? `gpu ${block.receive}`
                : `room towards gpu ${block.send}`;
          throw new Fault(
            `deadlock: gpu ${rank} tb ${b} waits at step ${at} ("${type}") for ${waits}`,
          );
        }
      });
    });
    for (const [name, packets] of this.#connections) {
      if (packets.length > 0)
        throw new Fault(`${packets.length} messages from ${name} are never received`);
    }
    this.#checkOutput();
    return { ok: true, steps, sent: this.#sent };
  }

  /** Runs the next step of a block if nothing is missing. */
  #step(rank: number, b: number): boolean {
    const block = this.#program.gpus[rank]!.blocks[b]!;
    const number = this.#firstBlock[rank]! + b;
    const s = this.#at[number]!;
    const step = block.steps[s]!;
    const clock = this.#clocks[number]!;
    const depended =
      step.dependBlock < 0
        ? undefined
        : this.#after.get(`${rank} ${step.dependBlock} ${step.dependStep}`);
    if (step.dependBlock >= 0 && depended === undefined) return false;
    const incoming = receives(step.type)
      ? this.#connection(block.receive, rank, block.channel)
      : undefined;
    if (incoming?.length === 0) return false;
    const outgoing = sends(step.type)
      ? this.#connection(rank, block.send, block.channel)
      : undefined;
    if (outgoing !== undefined && outgoing.length >= slots) return false;
    if (depended !== undefined) merge(clock, depended);
    const packet = incoming?.shift();
    if (packet !== undefined) merge(clock, packet.clock);
    clock[number] = s;
    const where = `gpu ${rank} tb ${b} step ${s}`;
    if (packet !== undefined && packet.values.length !== step.count) {
      throw new Fault(
        `${where} receives ${step.count} chunks, gpu ${block.receive} sent ${packet.values.length}`,
      );
    }
    const results: Value[] = [];
    for (let k = 0; step.type !== "nop" && k < step.count; k++) {
      results.push(this.#chunk(where, rank, number, step, k, packet?.values[k]));
    }
    if (outgoing !== undefined) {
      outgoing.push({ values: results, clock: clock.slice() });
      this.#sent[rank]! += step.count;
    }
    this.#after.set(`${rank} ${b} ${s}`, clock.slice());
    this.#at[number] = s + 1;
    return true;
  }

  /** Does a step for one of its chunks; returns what it would send. */
  #chunk(
    where: string,
    rank: number,
    number: number,
    step: MscclStep,
    k: number,
    received: Value | undefined,
  ): Value {
    const { type } = step;
    const touch = { block: number, step: this.#at[number]! };
    let value = received;
    if (reads(type)) {
      const cell = this.#cell(rank, step.source, step.sourceOffset + k);
      const name = `${step.source}[${step.sourceOffset + k}]`;
      this.#order(where, name, number, cell.writer);
      cell.readers.push(touch);
      if (cell.value === undefined) throw new Fault(`${where} reads ${name}, which holds nothing`);
      value = value === undefined ? cell.value : this.#add(where, value, cell.value);
    }
    if (writes(type)) {
      const cell = this.#cell(rank, step.target, step.targetOffset + k);
      const name = `${step.target}[${step.targetOffset + k}]`;
      this.#order(where, name, number, cell.writer);
      for (const reader of cell.readers) this.#order(where, name, number, reader);
      if (type === "re") {
        if (cell.value === undefined)
          throw new Fault(`${where} adds to ${name}, which holds nothing`);
        value = this.#add(where, value!, cell.value);
      }
      cell.value = value;
      cell.writer = touch;
      cell.readers = [];
    }
    return value!;
  }

  #add(where: string, a: Value, b: Value): Value {
    if (a.chunk !== b.chunk) throw new Fault(`${where} adds chunk ${a.chunk} to chunk ${b.chunk}`);
    const twice = a.gpus & b.gpus;
    if (twice !== 0n) {
      const gpu = twice.toString(2).length - 1;
      throw new Fault(`${where}: chunk ${a.chunk} would hold gpu ${gpu} twice`);
    }
    return { chunk: a.chunk, gpus: a.gpus | b.gpus };
  }

  /** Requires that a touch happened before what this block does now. */
  #order(where: string, name: string, number: number, touch: Touch | undefined): void {
    if (touch === undefined || this.#clocks[number]![touch.block]! >= touch.step) return;
    const rank = this.#firstBlock.findLastIndex((first) => first <= touch.block);
    throw new Fault(
      `race: ${where} and gpu ${rank} tb ${touch.block - this.#firstBlock[rank]!} step ${touch.step} touch ${name} in no order`,
    );
  }

  #connection(from: number, to: number, channel: number): Packet[] {
    const name = `gpu ${from} to gpu ${to} on channel ${channel}`;
    let packets = this.#connections.get(name);
    if (packets === undefined) this.#connections.set(name, (packets = []));
    return packets;
  }

  /** A chunk's cell; in place, chunks of input and output that are one memory are one cell. */
  #cell(rank: number, buffer: string, offset: number): Cell {
    const { inPlace, collective, gpus } = this.#program;
    let key = `${buffer}${offset}`;
    if (inPlace && buffer === "i" && collective === "allgather") {
      key = `o${rank * gpus[rank]!.input + offset}`;
    } else if (inPlace && buffer === "o" && collective === "reducescatter") {
      key = `i${rank * gpus[rank]!.output + offset}`;
    } else if (inPlace && buffer === "o" && collective !== "allgather") {
      key = `i${offset}`;
    }
    let cell = this.#cells[rank]!.get(key);
    if (cell === undefined) {
      cell = { value: undefined, writer: undefined, readers: [] };
      this.#cells[rank]!.set(key, cell);
    }
    return cell;
  }

  #checkOutput(): void {
    const { gpus, collective } = this.#program;
    const all = (1n << BigInt(gpus.length)) - 1n;
    gpus.forEach((gpu, rank) => {
      for (let k = 0; k < gpu.output; k++) {
        const per = { allgather: gpu.input, alltoall: gpu.input / gpus.length }[
          collective as string
        ];
        const from = per === undefined ? -1 : Math.floor(k / per);
        const chunk = {
          allreduce: k,
          reducescatter: rank * gpu.output + k,
          allgather: k % (per ?? 1),
          alltoall: rank * (per ?? 1) + (k % (per ?? 1)),
        }[collective];
        const want = from < 0 ? all : 1n << BigInt(from);
        const { value } = this.#cell(rank, "o", k);
        if (value?.chunk === chunk && value.gpus === want) continue;
        const list = (set: bigint): string =>
          gpus.flatMap((_, g) => ((set >> BigInt(g)) & 1n ? [g] : [])).join(", ");
        throw new Fault(
          `in the end gpu ${rank} o[${k}] holds ${value === undefined ? "nothing" : `chunk ${value.chunk} of gpus ${list(value.gpus)}`}, must hold chunk ${chunk} of gpus ${list(want)}`,
        );
      }
    });
  }
}

function merge(clock: Int32Array, other: Int32Array): void {
  for (let i = 0; i < clock.length; i++) if (other[i]! > clock[i]!) clock[i] = other[i]!;
}
