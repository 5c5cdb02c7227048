/**
 * An MSCCL program (microsoft/msccl-tools; MSCCLang, ASPLOS 2023): per GPU, thread blocks that each
 * send to at most one peer and receive from at most one, and run their steps in order; a step may
 * wait for a step of another block of its GPU.
 */
import { TriremeError, nearestName } from "@trireme/core";

export const stepTypes = ["s", "r", "rcs", "rrs", "rrc", "rrcs", "re", "cpy", "nop"] as const;
/** send; receive; receive copy send; receive reduce send; receive reduce copy (send); reduce; copy; nothing */
export type StepType = (typeof stepTypes)[number];
export type BufferName = "i" | "o" | "s";
export const mscclCollectives = ["allreduce", "allgather", "reducescatter", "alltoall"] as const;
export type MscclCollective = (typeof mscclCollectives)[number];

export interface MscclStep {
  readonly type: StepType;
  readonly source: BufferName;
  readonly sourceOffset: number;
  readonly target: BufferName;
  readonly targetOffset: number;
  readonly count: number;
  /** Block and step of this GPU to wait for; -1 for none. */
  readonly dependBlock: number;
  readonly dependStep: number;
  /** Whether a step of another block waits for this one. */
  readonly hasDependent: boolean;
}

export interface MscclBlock {
  /** Peers; -1 for none. */
  readonly send: number;
  readonly receive: number;
  readonly channel: number;
  readonly steps: readonly MscclStep[];
}

export interface MscclGpu {
  /** Chunks of the input, output and scratch buffers. */
  readonly input: number;
  readonly output: number;
  readonly scratch: number;
  readonly blocks: readonly MscclBlock[];
}

export interface MscclProgram {
  readonly name: string;
  readonly protocol: string;
  readonly collective: MscclCollective;
  readonly inPlace: boolean;
  readonly chunksPerLoop: number;
  readonly channels: number;
  readonly minBytes: number;
  /** 0 for no limit. */
  readonly maxBytes: number;
  readonly gpus: readonly MscclGpu[];
}

/** Limits of the MSCCL runtime. */
export const mscclLimits = { steps: 256, blocks: 216, count: 72 } as const;

/** More chunks of a buffer than any program has, few enough to be followed one by one. */
const mostChunks = 1_000_000;

/** Checks a program against the limits and its own numbers. Throws `MSCCL` naming GPU, block, step. */
export function checkMsccl(program: MscclProgram): void {
  const { gpus, channels } = program;
  const fail = (where: string, what: string): never => {
    throw new TriremeError("MSCCL", `${where}: ${what}`);
  };
  if (gpus.length === 0) fail("algo", "it has no gpu, at least 1");
  for (const [rank, gpu] of gpus.entries()) {
    const sizes = { i: gpu.input, o: gpu.output, s: gpu.scratch };
    for (const [buffer, chunks] of Object.entries(sizes)) {
      if (chunks >= 0 && chunks <= mostChunks) continue;
      fail(`gpu ${rank}`, `${buffer}_chunks="${chunks}" must be in 0..${mostChunks}`);
    }
    const ends = new Map<string, number>();
    if (gpu.blocks.length > mscclLimits.blocks) {
      fail(`gpu ${rank}`, `${gpu.blocks.length} thread blocks, at most ${mscclLimits.blocks}`);
    }
    for (const [b, block] of gpu.blocks.entries()) {
      const where = `gpu ${rank} tb ${b}`;
      if (block.steps.length > mscclLimits.steps) {
        fail(where, `${block.steps.length} steps, at most ${mscclLimits.steps}`);
      }
      if (block.channel < 0 || block.channel >= channels) {
        fail(where, `channel ${block.channel} must be in 0..${channels - 1}`);
      }
      for (const [end, peer] of [
        ["send", block.send],
        ["recv", block.receive],
      ] as const) {
        if (peer === -1) continue;
        if (!(peer >= 0 && peer < gpus.length) || peer === rank) {
          fail(where, `${end}="${peer}" must be another of the ${gpus.length} GPUs, or -1`);
        }
        const key = `${end} ${peer} ${block.channel}`;
        if (ends.has(key)) {
          fail(
            where,
            `tb ${ends.get(key)} already has ${end}="${peer}" on channel ${block.channel}`,
          );
        }
        ends.set(key, b);
      }
      for (const [s, step] of block.steps.entries()) {
        const at = `${where} step ${s}`;
        const { type, count, dependBlock, dependStep } = step;
        if (type !== "nop" && !(count >= 1 && count <= mscclLimits.count)) {
          fail(at, `cnt="${count}" must be in 1..${mscclLimits.count}`);
        }
        if (sends(type) && block.send < 0) fail(at, `type "${type}" sends, but the tb has no peer`);
        if (receives(type) && block.receive < 0) {
          fail(at, `type "${type}" receives, but the tb has no peer`);
        }
        for (const [used, buffer, offset] of [
          [reads(type), step.source, step.sourceOffset],
          [writes(type), step.target, step.targetOffset],
        ] as const) {
          if (used && !(offset >= 0 && offset + count <= sizes[buffer])) {
            fail(
              at,
              `${buffer}[${offset}..${offset + count - 1}] lies outside ${sizes[buffer]} chunks`,
            );
          }
        }
        if (dependBlock >= 0 && !(dependStep in (gpu.blocks[dependBlock]?.steps ?? []))) {
          fail(at, `depends on tb ${dependBlock} step ${dependStep}, which does not exist`);
        }
      }
    }
  }
}

export const sends = (type: StepType): boolean => ["s", "rcs", "rrs", "rrcs"].includes(type);
export const receives = (type: StepType): boolean => type.startsWith("r") && type !== "re";
/** Whether the source buffer is read: what is sent or added, or copied here. */
export const reads = (type: StepType): boolean =>
  ["s", "rrs", "rrc", "rrcs", "re", "cpy"].includes(type);
export const writes = (type: StepType): boolean =>
  ["r", "rcs", "rrc", "rrcs", "re", "cpy"].includes(type);

/** The name among the known ones. Throws `MSCCL` with the line and the nearest. */
export function oneOf<T extends string>(
  known: readonly T[],
  name: string,
  line: number,
  what: string,
): T {
  const found = known.find((one) => one === name);
  if (found !== undefined) return found;
  const nearest = nearestName(name, known);
  throw new TriremeError(
    "MSCCL",
    `line ${line}: unknown ${what} "${name}"; ${nearest === undefined ? `known are ${known.join(", ")}` : `did you mean "${nearest}"?`}`,
  );
}
