/** Text generation through the pipeline as it stands: no rank needs more than its own stages. */
import { type Rng, createRng } from "@trireme/core";
import type { Model, Stage } from "@trireme/workload";
import type { Kernels } from "../kernels/kernels.ts";
import type { Parallel } from "../layout/parallel.ts";
import type { Pool } from "../memory/pool.ts";
import type { Products } from "../tape/products.ts";
import type { StageBoundary } from "../staged/stage-boundary.ts";
import type { StageWeights } from "../weights/stage-weights.ts";
import { Tape, type Variable } from "../tape/tape.ts";
import { view } from "../memory/tensor.ts";
import type { StageOptions } from "./stage-options.ts";
import { stageForward } from "./transformer.ts";

/** What to continue, and how. */
export interface GenerateOptions {
  /** Token ids to continue; at least one. */
  readonly prompt: Int32Array;
  /** Tokens to add. */
  readonly count: number;
  /** 0 takes the likeliest token; 1 samples from the model's distribution. */
  readonly temperature: number;
  readonly seed: number;
}

interface Generator extends GenerateOptions {
  readonly model: Model;
  /** The stages this rank holds, ascending. */
  readonly stages: readonly Stage[];
  readonly rankOfStage: readonly number[];
  readonly weights: ReadonlyMap<number, StageWeights>;
  readonly parallel: Parallel;
  readonly products: Products;
  readonly experts: NonNullable<StageOptions["experts"]>;
  /** Rows of the vocabulary on each of the ranks that share it out. */
  readonly vocabParts: readonly number[];
  readonly boundary: StageBoundary;
  readonly kernels: Kernels;
  readonly pool: Pool;
}

/** What stands in a text for a token that the logits do not choose: they are no finite numbers. */
export const noToken = -1;

/** The new tokens at the rank that holds the head; elsewhere an empty array. */
export function generate(o: Generator): Int32Array {
  const { boundary, rankOfStage, model, stages } = o;
  const last = rankOfStage.length - 1;
  const [embeds, heads] = [stages.some((s) => s.embedding), stages.some((s) => s.head)];
  const tokens = new Int32Array(o.prompt.length + o.count);
  tokens.set(o.prompt);
  const rng = createRng(o.seed);
  for (let length = o.prompt.length; length < tokens.length; length++) {
    // Learned positions end at the context: the window slides, and each token sees what it holds.
    const from = Math.max(0, length - model.context);
    const logits = forward(o, tokens.subarray(from, length));
    if (logits !== undefined) tokens[length] = sample(logits, o.temperature, rng);
    if (embeds === heads) continue;
    const next = tokens.subarray(length, length + 1);
    if (heads) boundary.send(next, 0, false).work.wait();
    if (embeds) boundary.receive(next, last, false);
  }
  return heads ? tokens.slice(o.prompt.length) : new Int32Array(0);
}

/** One pass through the rank's stages; the last token's logits [vocab] at the head. */
function forward(o: Generator, window: Int32Array): Float32Array | undefined {
  const { model, kernels, pool, boundary, rankOfStage, weights } = o;
  const { memory } = pool;
  const sequence = window.length;
  const tape = new Tape(kernels, pool, false, o.products);
  const ids = pool.allocateBytes(sequence * 4);
  new Int32Array(memory.buffer, ids, sequence).set(localIds(o, window));
  // A window of any length: without the split of tokens between products.
  const tensor = o.parallel.tensor && { ...o.parallel.tensor, sequence: false };
  let logits: Float32Array | undefined;
  let hidden: Variable | undefined;
  for (const stage of o.stages) {
    const [before, here, after] = [-1, 0, 1].map((d) => rankOfStage[stage.stage + d]);
    if (!stage.embedding && before !== here) {
      hidden = tape.variable([sequence, model.hidden], false);
      boundary.receive(view(memory, hidden.value), stage.stage - 1, false);
    }
    const pieces = [{ start: 0, count: sequence }];
    const input = { batch: 1, pieces, tokens: ids, hidden };
    const parameters = weights.get(stage.stage)!;
    const output = stageForward(
      tape,
      { model, stage, parameters, parallel: { tensor, context: undefined }, experts: o.experts },
      input,
    );
    if (stage.head) logits = allLogits(o, view(memory, output.value));
    else if (after !== here)
      boundary.send(view(memory, output.value), stage.stage + 1, false).work.wait();
    hidden = output;
  }
  tape.release();
  pool.freeBytes(ids, sequence * 4);
  return logits;
}

/** Ids counted from the rank's part of the vocabulary; −1 outside of it. */
function localIds({ parallel, vocabParts }: Generator, window: Int32Array): Int32Array {
  const rank = parallel.tensor?.group.rank ?? 0;
  const start = vocabParts.slice(0, rank).reduce((sum, rows) => sum + rows, 0);
  return window.map((id) => (id >= start && id < start + vocabParts[rank]! ? id - start : -1));
}

/** The last token's logits over the whole vocabulary. */
function allLogits({ parallel, vocabParts, model }: Generator, logits: Float32Array): Float32Array {
  const { group } = parallel.tensor ?? {};
  const mine = logits.slice(-vocabParts[group?.rank ?? 0]!);
  if (group === undefined) return mine;
  const all = new Float32Array(model.vocab);
  group.allGatherV(mine, all, { counts: vocabParts }).wait();
  return all;
}

/** A token drawn from softmax(logits / temperature), if any is; ties and the limit 0 go to the lowest id. */
function sample(logits: Float32Array, temperature: number, rng: Rng): number {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  if (!Number.isFinite(largest)) return noToken;
  if (temperature === 0) return logits.indexOf(largest);
  const weights = Float64Array.from(logits, (x) => Math.exp((x - largest) / temperature));
  let left = rng.float() * weights.reduce((a, b) => a + b);
  for (let token = 0; token < weights.length; token++) {
    left -= weights[token]!;
    if (left < 0) return token;
  }
  return weights.length - 1;
}
