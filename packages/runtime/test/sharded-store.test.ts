import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type GlobalTensor,
  type Holding,
  type ParallelLayout,
  assemble,
  decodeSafetensors,
  defineLayout,
  holders,
  holdingBytes,
  layoutRanks,
  optimizerState,
  readPlan,
  regionRuns,
  savePlan,
} from "@trireme/checkpoint";
import { heldPieces, rankFiles, readRank, writeFiles } from "@trireme/runtime";
import { fileStorage, fileStore } from "@trireme/runtime/node";
import { afterEach, beforeEach, expect, it } from "vitest";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "trireme-shards-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const layers = 4;
const weights: readonly GlobalTensor[] = [
  { name: "embedding", dtype: "BF16", shape: [13, 8], place: "ends", tensorParallel: { dim: 0 } },
  ...Array.from({ length: layers }, (_, place): readonly GlobalTensor[] => [
    { name: `${place}.fc1`, dtype: "BF16", shape: [12, 8], place, tensorParallel: { dim: 0 } },
    { name: `${place}.fc2`, dtype: "BF16", shape: [8, 12], place, tensorParallel: { dim: 1 } },
    { name: `${place}.norm`, dtype: "F32", shape: [8], place },
  ]).flat(),
];
const tensors = [...weights, ...optimizerState(weights)];
const width = (tensor: GlobalTensor): number => (tensor.dtype === "BF16" ? 2 : 4);

/** Every byte of every tensor differs from its neighbours'. */
const whole = tensors.map((tensor, i) =>
  Uint8Array.from(
    { length: tensor.shape.reduce((a, b) => a * b, width(tensor)) },
    (_, at) => (at * 7 + i * 31) % 251,
  ),
);

/** What a holding holds, cut from the whole tensor by its regions. */
function held(holding: Holding): Uint8Array {
  const { tensor: index } = holding;
  const tensor = tensors[index]!;
  const source = {
    file: "",
    key: tensor.name,
    region: { start: tensor.shape.map(() => 0), shape: tensor.shape },
  };
  const copies = holding.pieces.map(({ region, local }) => ({ source, region, local }));
  return assemble(tensor, { holding, copies, reader: 0 }, () => whole[index]!);
}

async function save(layout: ParallelLayout): Promise<void> {
  const plan = savePlan(tensors, layout);
  const read = heldPieces(tensors, held);
  const ranks = Array.from({ length: layoutRanks(layout) }, (_, rank) => rank);
  await fileStore(root).saveShards(
    7,
    ranks.map(
      (rank) => (into) => writeFiles(fileStorage, into, rankFiles({ tensors, plan, rank, read })),
    ),
  );
}

it.each([
  ["one rank to tensor, pipeline and data parallel", { zero: 0 }, { tp: 2, pp: 2, dp: 2, zero: 1 }],
  ["ZeRO-1 over 8 ranks to 3", { tp: 2, pp: 2, dp: 2, zero: 1 }, { dp: 3, zero: 3 }],
  [
    "pipeline to tensor parallel",
    { pp: 4, zero: 0 },
    { tp: 4, cp: 2, zero: 1, partition: "tensor" },
  ],
] as const)("%s: what every rank reads is what it would have held", async (_, from, to) => {
  await save(defineLayout({ layers, ...from }));
  const layout = defineLayout({ layers, ...to });
  const checkpoint = await fileStore(root).open();
  await checkpoint.verify();
  const plan = readPlan((await checkpoint.index())!, tensors, layout);
  let bytesRead = 0;
  for (let rank = 0; rank < layoutRanks(layout); rank++) {
    for await (const { assembly, bytes } of readRank(checkpoint, tensors, plan, rank)) {
      expect(holders(assembly.holding)).toContain(rank);
      expect(bytes).toEqual(held(assembly.holding));
      expect(bytes.length).toBe(holdingBytes(assembly.holding, tensors[assembly.holding.tensor]!));
      bytesRead += bytes.length;
    }
  }
  expect(bytesRead).toBe(plan.bytes.reduce((a, b) => a + b, 0));
});

it("each rank writes a file that is safetensors, rank 0 the index, and the marker lists them all", async () => {
  await save(defineLayout({ layers, tp: 2, pp: 2, dp: 1 }));
  const checkpoint = await fileStore(root).open(7);
  const names = checkpoint.files.map(({ name }) => name).sort();
  expect(names).toEqual([
    "index.json",
    ...[0, 1, 2, 3].map((rank) => `rank-0000${rank}.safetensors`),
  ]);
  expect(readdirSync(join(root, checkpoint.name)).sort()).toEqual(["COMPLETE", ...names]);
  for (const { name, key, region, tensor } of ((await checkpoint.index()) ?? []).flatMap((stored) =>
    stored.pieces.map((piece) => ({ ...piece, name: piece.file, tensor: stored })),
  )) {
    const file = decodeSafetensors(await checkpoint.read(name));
    const found = file.tensors.find((entry) => entry.name === key)!;
    const index = tensors.findIndex((t) => t.name === tensor.name);
    const runs = [...regionRuns(tensor.shape, region, width(tensors[index]!))];
    const bytes = runs.flatMap(({ offset, length }) => [
      ...whole[index]!.subarray(offset, offset + length),
    ]);
    expect([...found.data]).toEqual(bytes);
  }
});
