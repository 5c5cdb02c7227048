/**
 * What a data constructor makes of a plan and the samples it names: rows packed, padded, with labels,
 * positions and boundaries, and cut for context parallelism. Pure: a constructor that is started again
 * makes the same.
 */
import { TriremeError } from "@trireme/core";
import { zigzagChunks } from "../context-parallel.ts";
import { packedRow } from "../packed-row.ts";
import { type LongDocuments, type PackingMethod, pack, packedRows } from "../packing.ts";
import { type LoadingPlan, membersOf } from "../planning/loading-plan.ts";

/** How rows are made. */
export interface ConstructOptions {
  /** Tokens of a row. */
  readonly sequence: number;
  readonly method: PackingMethod;
  /** Default "truncate", which bounds the rows by the samples. */
  readonly long?: LongDocuments;
  /** Token that fills a row's end. Default 0. */
  readonly padding?: number;
}

/** Rows of one microbatch; row-major [rows, width]. */
export interface Microbatch {
  readonly rows: number;
  readonly width: number;
  readonly tokens: Int32Array;
  /** The token to predict at each place. */
  readonly labels: Int32Array;
  /** Place in the document. */
  readonly positions: Int32Array;
  /** 1 where the label counts. */
  readonly lossMask: Uint8Array;
  /** Where each row's boundaries end in `boundaries`. [rows] */
  readonly boundaryEnds: Int32Array;
  /** Where segments begin and the last ends (cu_seqlens), in tokens of the whole row, row after row. */
  readonly boundaries: Int32Array;
}

/** All of one share's step. */
export interface ShareBatch {
  readonly step: number;
  readonly share: number;
  readonly microbatches: readonly Microbatch[];
}

/** Tokens of sample i of the plan. */
export type ReadSample = (sample: number) => Int32Array;

/** Builds a share's microbatches of a step. */
export function constructShare(
  plan: LoadingPlan,
  share: number,
  read: ReadSample,
  options: ConstructOptions,
): ShareBatch {
  const microbatches = Array.from({ length: plan.microbatches }, (_, m) =>
    constructMicrobatch(plan, membersOf(plan, share, m), read, options),
  );
  return { step: plan.step, share, microbatches };
}

function constructMicrobatch(
  plan: LoadingPlan,
  members: readonly number[],
  read: ReadSample,
  { sequence, method, long = "truncate", padding = 0 }: ConstructOptions,
): Microbatch {
  const samples = members.map((sample) => {
    const tokens = read(sample);
    if (tokens.length !== plan.tokens[sample]) {
      throw new TriremeError(
        "CONSTRUCT",
        `step ${plan.step}: sample ${sample} (source ${plan.sources[sample]}, position ${plan.positions[sample]}) came with ${tokens.length} tokens, its metadata said ${plan.tokens[sample]}`,
      );
    }
    return tokens;
  });
  const lengths = samples.map(({ length }) => length);
  const packing = pack({ lengths, capacity: sequence, method, long });
  const rows = packedRows(packing);
  const size = rows * sequence;
  const tokens = new Int32Array(size);
  const labels = new Int32Array(size);
  const positions = new Int32Array(size);
  const lossMask = new Uint8Array(size);
  const boundaryEnds = new Int32Array(rows);
  const boundaries: number[] = [];
  for (let r = 0; r < rows; r++) {
    const row = packedRow(
      packing,
      r,
      lengths,
      (document, start, into) => into.set(samples[document]!.subarray(start, start + into.length)),
      padding,
    );
    tokens.set(row.tokens, r * sequence);
    labels.set(row.labels, r * sequence);
    positions.set(row.positions, r * sequence);
    lossMask.set(row.lossMask, r * sequence);
    // One by one: a row may have more segments than a call takes arguments.
    for (const boundary of row.boundaries) boundaries.push(boundary);
    boundaryEnds[r] = boundaries.length;
  }
  return {
    rows,
    width: sequence,
    tokens,
    labels,
    positions,
    lossMask,
    boundaryEnds,
    boundaries: Int32Array.from(boundaries),
  };
}

/** The zig-zag slice of a context-parallel rank: its two chunks of every row, side by side. */
export function sliceMicrobatch(batch: Microbatch, slices: number, slice: number): Microbatch {
  const chunks = zigzagChunks(batch.width, slices, slice);
  if (slices === 1) return batch;
  const width = batch.width / slices;
  const cut = <T extends Int32Array | Uint8Array>(from: T, into: T): T => {
    for (let r = 0, at = 0; r < batch.rows; r++) {
      for (const { start, end } of chunks) {
        into.set(from.subarray(r * batch.width + start, r * batch.width + end), at);
        at += end - start;
      }
    }
    return into;
  };
  const size = batch.rows * width;
  return {
    ...batch,
    width,
    tokens: cut(batch.tokens, new Int32Array(size)),
    labels: cut(batch.labels, new Int32Array(size)),
    positions: cut(batch.positions, new Int32Array(size)),
    lossMask: cut(batch.lossMask, new Uint8Array(size)),
  };
}
