/**
 * A plan as an MSCCL program: on each GPU one thread block per peer it sends to and one per peer it
 * receives from; a step waits for the steps of other blocks that wrote what it reads or touched what
 * it writes (through `nop` steps where there are several).
 */
import { TriremeError } from "@trireme/core";
import type { CollectivePlan, PlanOperation } from "../plan/plan.ts";
import {
  type BufferName,
  type MscclBlock,
  type MscclCollective,
  type MscclProgram,
  type MscclStep,
  checkMsccl,
  mscclLimits,
} from "./program.ts";

const names: Readonly<Partial<Record<PlanOperation, MscclCollective>>> = {
  "all-reduce": "allreduce",
  "all-gather": "allgather",
  "reduce-scatter": "reducescatter",
  "all-to-all": "alltoall",
};

interface Place {
  readonly buffer: BufferName;
  readonly offset: number;
}
interface Touch {
  readonly block: number;
  readonly step: number;
}
type DraftStep = { -readonly [K in keyof MscclStep]: MscclStep[K] };

/** One GPU under construction. */
class Gpu {
  readonly blocks: { send: number; receive: number; steps: DraftStep[] }[] = [];
  readonly #byPeer = new Map<string, number>();
  readonly #writer = new Map<string, Touch>();
  readonly #readers = new Map<string, Touch[]>();
  scratch = 0;
  readonly #scratch = new Map<number, number>();

  block(send: number, receive: number): number {
    const key = `${send} ${receive}`;
    let number = this.#byPeer.get(key);
    if (number === undefined) {
      number = this.blocks.push({ send, receive, steps: [] }) - 1;
      this.#byPeer.set(key, number);
    }
    return number;
  }

  /** The scratch slot of a chunk that only passes through. */
  scratchOf(chunk: number): number {
    let slot = this.#scratch.get(chunk);
    if (slot === undefined) this.#scratch.set(chunk, (slot = this.scratch++));
    return slot;
  }

  /** What a step over these places must come after. */
  before(read: readonly string[], written: readonly string[]): Touch[] {
    const touches: Touch[] = [];
    for (const place of [...read, ...written]) {
      const writer = this.#writer.get(place);
      if (writer !== undefined) touches.push(writer);
    }
    for (const place of written) touches.push(...(this.#readers.get(place) ?? []));
    return touches;
  }

  /** Adds a step after others, and notes what it touches. */
  add(
    block: number,
    step: Pick<MscclStep, "type" | "count"> & { readonly from: Place; readonly to: Place },
    after: readonly Touch[],
    read: readonly string[],
    written: readonly string[],
  ): void {
    const { steps } = this.blocks[block]!;
    // Of each other block the latest step is enough.
    const latest = new Map<number, number>();
    for (const touch of after) {
      if (touch.block !== block) {
        latest.set(touch.block, Math.max(latest.get(touch.block) ?? -1, touch.step));
      }
    }
    const dependencies = [...latest];
    const last = dependencies.pop();
    const { from, to } = step;
    const draft = (
      type: MscclStep["type"],
      count: number,
      [dependBlock, dependStep]: readonly [number, number],
    ): DraftStep => ({
      type,
      source: from.buffer,
      sourceOffset: from.offset,
      target: to.buffer,
      targetOffset: to.offset,
      count,
      dependBlock,
      dependStep,
      hasDependent: false,
    });
    for (const dependency of dependencies) steps.push(draft("nop", 0, dependency));
    steps.push(draft(step.type, step.count, last ?? [-1, -1]));
    for (const [b, s] of latest) this.blocks[b]!.steps[s]!.hasDependent = true;
    const touch = { block, step: steps.length - 1 };
    for (const place of read) {
      const readers = this.#readers.get(place);
      if (readers === undefined) this.#readers.set(place, [touch]);
      else readers.push(touch);
    }
    for (const place of written) {
      this.#writer.set(place, touch);
      this.#readers.set(place, []);
    }
  }
}

/**
 * Exports a plan. Throws `MSCCL` for operations the format has no name for, plans with switches or
 * uneven chunks, and programs beyond MSCCL's limits.
 */
export function mscclFromPlan(plan: CollectivePlan): MscclProgram {
  const { operation, algorithm, ranks, chunks, switches, sizes } = plan;
  const collective = names[operation];
  if (collective === undefined || switches > 0 || sizes !== undefined) {
    throw new TriremeError(
      "MSCCL",
      `${operation} by ${algorithm} with ${switches} switches${sizes === undefined ? "" : " and uneven chunks"}; MSCCL has ${Object.keys(names).join(", ")} of even chunks without switches`,
    );
  }
  const perRank = chunks / ranks;
  const gpus = Array.from({ length: ranks }, () => new Gpu());
  const place = (rank: number, chunk: number): Place => {
    if (operation === "all-gather") return { buffer: "o", offset: chunk };
    if (operation !== "all-to-all") return { buffer: "i", offset: chunk };
    const block = perRank / ranks;
    const source = Math.floor(chunk / perRank);
    const target = Math.floor(chunk / block) % ranks;
    if (source === rank) return { buffer: "i", offset: chunk % perRank };
    if (target === rank) return { buffer: "o", offset: source * block + (chunk % block) };
    return { buffer: "s", offset: gpus[rank]!.scratchOf(chunk) };
  };
  for (let step = 0; step < plan.steps; step++) addStep(plan, step, gpus, place);
  if (operation === "all-to-all") {
    gpus.forEach((gpu, rank) => {
      const count = perRank / ranks;
      const offset = rank * count;
      const block = gpu.block(-1, -1);
      for (let k = 0; k < count; k += mscclLimits.count) {
        const move = Math.min(mscclLimits.count, count - k);
        const [from, to] = [
          { buffer: "i", offset: offset + k },
          { buffer: "o", offset: offset + k },
        ] as const;
        gpu.add(block, { type: "cpy", count: move, from, to }, [], [], []);
      }
    });
  }
  const reduceScatter = operation === "reduce-scatter";
  const program: MscclProgram = {
    name: `${operation}-${algorithm}-${ranks}`,
    protocol: "Simple",
    collective,
    inPlace: operation !== "all-to-all",
    chunksPerLoop: operation === "all-to-all" ? perRank : chunks,
    channels: 1,
    minBytes: 0,
    maxBytes: 0,
    gpus: gpus.map((gpu) => ({
      input: operation === "all-gather" || operation === "all-to-all" ? perRank : chunks,
      output: reduceScatter || operation === "all-to-all" ? perRank : chunks,
      scratch: gpu.scratch,
      blocks: gpu.blocks.map((block): MscclBlock => ({ ...block, channel: 0 })),
    })),
  };
  checkMsccl(program);
  return program;
}

/** Adds the sends of a step, then its receives: a step reads before it writes. */
function addStep(
  plan: CollectivePlan,
  step: number,
  gpus: readonly Gpu[],
  place: (rank: number, chunk: number) => Place,
): void {
  const { starts, source, target, reduce } = plan;
  const runs: { row: number; chunk: number; count: number }[] = [];
  for (let row = starts[step]!; row < starts[step + 1]!; row++) {
    let chunk = plan.chunk[row]!;
    const end = chunk + plan.count[row]!;
    while (chunk < end) {
      const count = runLength(place, source[row]!, target[row]!, chunk, end);
      runs.push({ row, chunk, count });
      chunk += count;
    }
  }
  const keys = (rank: number, chunk: number, count: number): string[] =>
    Array.from({ length: count }, (_, k) => {
      const { buffer, offset } = place(rank, chunk + k);
      return `${buffer}${offset}`;
    });
  for (const { row, chunk, count } of runs) {
    const [rank, to] = [source[row]!, target[row]!];
    const gpu = gpus[rank]!;
    const read = keys(rank, chunk, count);
    const from = place(rank, chunk);
    const after = gpu.before(read, []);
    gpu.add(gpu.block(to, -1), { type: "s", count, from, to: from }, after, read, []);
  }
  for (const { row, chunk, count } of runs) {
    const rank = target[row]!;
    const gpu = gpus[rank]!;
    const written = keys(rank, chunk, count);
    const at = place(rank, chunk);
    const type = reduce[row] === 1 ? "rrc" : "r";
    const read = reduce[row] === 1 ? written : [];
    const after = gpu.before(read, written);
    gpu.add(gpu.block(-1, source[row]!), { type, count, from: at, to: at }, after, read, written);
  }
}

/** Chunks from `chunk` on that lie next to each other on both sides, up to MSCCL's limit. */
function runLength(
  place: (rank: number, chunk: number) => Place,
  source: number,
  target: number,
  chunk: number,
  end: number,
): number {
  const starts = [source, target].map((rank) => place(rank, chunk));
  let count = 1;
  while (chunk + count < end && count < mscclLimits.count) {
    const adjacent = [source, target].every((rank, side) => {
      const { buffer, offset } = place(rank, chunk + count);
      return buffer === starts[side]!.buffer && offset === starts[side]!.offset + count;
    });
    if (!adjacent) break;
    count++;
  }
  return count;
}
