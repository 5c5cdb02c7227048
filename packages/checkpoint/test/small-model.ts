/** A small model of every kind of tensor: fused, grouped, tied, expert, replicated, scalar, empty. */
import { type GlobalTensor, dtypeBits, optimizerState } from "@trireme/checkpoint";
import type { Rng } from "@trireme/core";

export const layers = 6;

const heads = 4;
const kvHeads = 2;
const headDim = 3;

function layerWeights(place: number): GlobalTensor[] {
  const at = (name: string): string => `layers.${place}.${name}`;
  const [hidden, ffn, experts] = [heads * headDim, 10, 5];
  const dtype = "BF16";
  const qkv = [
    { size: heads * headDim, units: heads },
    { size: kvHeads * headDim, units: kvHeads },
    { size: kvHeads * headDim, units: kvHeads },
  ];
  const rows = (heads + 2 * kvHeads) * headDim;
  return [
    { name: at("norm"), dtype, shape: [hidden], place },
    {
      name: at("qkv"),
      dtype,
      shape: [rows, hidden],
      place,
      tensorParallel: { dim: 0, parts: qkv },
    },
    {
      name: at("qkv.bias"),
      dtype,
      shape: [rows],
      place,
      tensorParallel: { dim: 0, parts: qkv },
    },
    { name: at("proj"), dtype, shape: [hidden, hidden], place, tensorParallel: { dim: 1 } },
    { name: at("router"), dtype: "F32", shape: [experts, hidden], place },
    {
      name: at("experts.fc1"),
      dtype,
      shape: [experts, hidden, 2 * ffn],
      place,
      tensorParallel: { dim: 2, parts: [{ size: ffn }, { size: ffn }] },
      experts: { dim: 0 },
    },
    ...Array.from({ length: experts }, (_, index): GlobalTensor => ({
      name: at(`experts.${index}.fc2`),
      dtype,
      shape: [ffn, 7],
      place,
      tensorParallel: { dim: 0 },
      experts: { index, count: experts },
    })),
  ];
}

const weights: readonly GlobalTensor[] = [
  {
    name: "embedding",
    dtype: "BF16",
    shape: [13, 12],
    place: "ends",
    tensorParallel: { dim: 0 },
  },
  { name: "positions", dtype: "BF16", shape: [5, 12], place: "first" },
  ...Array.from({ length: layers }, (_, layer) => layerWeights(layer)).flat(),
  { name: "final.norm", dtype: "F32", shape: [12], place: "last" },
  { name: "temperature", dtype: "F32", shape: [], place: "last" },
  { name: "empty", dtype: "F32", shape: [0, 4], place: "first" },
];

/** Weights, and Adam's states of them, and one counter that every pipeline rank has. */
export const smallModel: readonly GlobalTensor[] = [
  ...weights,
  ...optimizerState(weights),
  { name: "optimizer.step", dtype: "I64", shape: [], place: "every", state: "step" },
];

/** Random bytes for every tensor of the model. */
export function randomState(rng: Rng): readonly Uint8Array[] {
  return smallModel.map(({ shape, dtype }) => {
    const width = dtypeBits(dtype) / 8;
    const count = shape.reduce((a, b) => a * b, width);
    return Uint8Array.from({ length: count }, () => rng.integer(256));
  });
}
