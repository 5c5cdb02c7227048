/** Random pairs of layouts, and the whole way of a state from one to the other. */
import { expect } from "vitest";
import { type Rng, createRng } from "@trireme/core";
import {
  type ParallelLayout,
  type ReadPlan,
  type SavePlan,
  type TensorEntry,
  assemble,
  cutPiece,
  decodeSafetensors,
  defineLayout,
  encodeCheckpointIndex,
  encodeSafetensors,
  findTensor,
  holders,
  layoutRanks,
  parseCheckpointIndex,
  rankFileName,
  readPlan,
  savePlan,
} from "@trireme/checkpoint";
import { directShard } from "./direct-sharding.ts";
import { layers, randomState, smallModel } from "./small-model.ts";

const pick = <T>(rng: Rng, values: readonly T[]): T => values[rng.integer(values.length)]!;

/** A layout drawn from all that the small model can have, up to 128 ranks. */
export function randomLayout(rng: Rng): ParallelLayout {
  const tp = pick(rng, [1, 2, 4]);
  const [pp, vpp] = pick(rng, [
    [1, 1],
    [2, 1],
    [3, 1],
    [1, 2],
    [2, 2],
    [2, 3],
    [4, 1],
  ] as const);
  const [dp, cp, ep] = [pick(rng, [1, 2, 3, 4]), pick(rng, [1, 2]), pick(rng, [1, 2, 3])];
  if ((tp * dp * cp) % ep !== 0) return randomLayout(rng);
  const stages = pp * vpp;
  const cuts = Array.from({ length: stages - 1 }, () => rng.integer(layers + 1)).sort(
    (a, b) => a - b,
  );
  const bounds = [0, ...cuts, layers];
  const stageLayers = bounds.slice(1).map((end, i) => end - bounds[i]!);
  const even = layers % stages === 0 && rng.integer(2) === 0;
  const wave = vpp === 2 && rng.integer(2) === 0;
  return defineLayout({
    layers,
    tp,
    pp,
    vpp,
    dp,
    cp,
    ep,
    zero: pick(rng, [0, 1, 2, 3] as const),
    partition: pick(rng, ["buffer", "tensor"] as const),
    ...((tp * dp * cp) % (tp * ep) === 0 && rng.integer(2) === 0 ? { expertTp: 1 } : {}),
    ...(even ? {} : { stageLayers }),
    // Down the ranks and back, as ZB-V and DualPipe place their chunks.
    ...(wave
      ? { stageRank: Array.from({ length: stages }, (_, s) => (s < pp ? s : stages - 1 - s)) }
      : {}),
  });
}

/** What every rank holds, by tensor. */
function shardDirectly(
  state: readonly Uint8Array[],
  layout: ParallelLayout,
): ReadonlyMap<string, Uint8Array>[] {
  return Array.from({ length: layoutRanks(layout) }, (_, rank) => {
    const direct = directShard(smallModel, state, layout, rank);
    const byName = new Map([...direct].map(([name, b]) => [name.slice(name.indexOf("/") + 1), b]));
    expect(byName.size).toBe(direct.size);
    return byName;
  });
}

function save(
  plan: SavePlan,
  shards: readonly ReadonlyMap<string, Uint8Array>[],
): ReadonlyMap<string, Uint8Array> {
  const files = new Map<string, TensorEntry[]>();
  for (const { writer, holding, piece, key } of plan.pieces) {
    const tensor = smallModel[holding.tensor]!;
    const held = shards[writer]!.get(tensor.name)!;
    const data = cutPiece(tensor, holding, held, piece);
    const entry = { name: key, dtype: tensor.dtype, shape: piece.region.shape, data };
    const file = rankFileName(writer);
    files.set(file, [...(files.get(file) ?? []), entry]);
  }
  return new Map([...files].map(([name, entries]) => [name, encodeSafetensors(entries)]));
}

function load(
  plan: ReadPlan,
  files: ReadonlyMap<string, Uint8Array>,
  ranks: number,
): ReadonlyMap<string, Uint8Array>[] {
  const opened = new Map([...files].map(([name, b]) => [name, decodeSafetensors(b).tensors]));
  const loaded = Array.from({ length: ranks }, () => new Map<string, Uint8Array>());
  for (const assembly of plan.assemblies) {
    const tensor = smallModel[assembly.holding.tensor]!;
    const bytes = assemble(
      tensor,
      assembly,
      ({ source }) => findTensor(opened.get(source.file)!, source.key).data,
    );
    for (const rank of holders(assembly.holding)) {
      expect(loaded[rank]!.has(tensor.name)).toBe(false);
      loaded[rank]!.set(tensor.name, bytes);
    }
  }
  return loaded;
}

/**
 * Saves a random state by one random layout, reads it by another, and compares every byte of every
 * rank with direct sharding; `pairs` times.
 */
export function checkRandomPairs(pairs: number, seed: number): void {
  const rng = createRng(seed);
  let changed = 0;
  for (let pair = 0; pair < pairs; pair++) {
    const [from, to] = [randomLayout(rng), randomLayout(rng)];
    const state = randomState(rng);
    const saved = savePlan(smallModel, from);
    const files = save(saved, shardDirectly(state, from));
    const stored = parseCheckpointIndex(encodeCheckpointIndex(saved.index));
    const plan = readPlan(stored, smallModel, to);
    expect(plan.unused).toEqual([]);
    const loaded = load(plan, files, layoutRanks(to));
    const wanted = shardDirectly(state, to);
    for (const [rank, shard] of wanted.entries()) {
      expect([...loaded[rank]!.keys()].sort()).toEqual([...shard.keys()].sort());
      for (const [name, bytes] of shard) {
        // Buffer.compare: the matcher for typed arrays is a hundred times slower.
        if (Buffer.compare(loaded[rank]!.get(name)!, bytes) !== 0) {
          expect.fail(`rank ${rank} has other bytes of ${name}, pair ${pair}`);
        }
      }
    }
    // Every byte of the model is written once, by whoever.
    const size = state.reduce((sum, bytes) => sum + bytes.length, 0);
    expect(saved.bytes.reduce((a, b) => a + b, 0)).toBe(size);
    if (JSON.stringify(from) !== JSON.stringify(to)) changed++;
  }
  expect(changed).toBeGreaterThan(0.9 * pairs);
}
