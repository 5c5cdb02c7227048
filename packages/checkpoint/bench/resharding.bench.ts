/**
 * Planning to carry a checkpoint of 10^12 parameters with Adam's states from 3,072 ranks to 2,048.
 * The model is the 1T GPT of Narayanan et al., SC'21, table 1: 128 layers, hidden 25,600, 160 heads.
 */
import {
  type GlobalTensor,
  type ParallelLayout,
  defineLayout,
  optimizerState,
  readPlan,
  savePlan,
} from "@trireme/checkpoint";

const layers = 128;
const hidden = 25_600;
const dtype = "BF16";

function layerWeights(place: number): readonly GlobalTensor[] {
  const at = (name: string): string => `layers.${place}.${name}`;
  const columns = (name: string, rows: number, parts: number): readonly GlobalTensor[] => {
    const size = rows / parts;
    const fused = Array.from({ length: parts }, () => ({ size }));
    const tensorParallel = { dim: 0, parts: fused };
    return [
      { name: at(`${name}.weight`), dtype, shape: [rows, hidden], place, tensorParallel },
      { name: at(`${name}.bias`), dtype, shape: [rows], place, tensorParallel },
    ];
  };
  const rows = (name: string, width: number): readonly GlobalTensor[] => [
    {
      name: at(`${name}.weight`),
      dtype,
      shape: [hidden, width],
      place,
      tensorParallel: { dim: 1 },
    },
    { name: at(`${name}.bias`), dtype, shape: [hidden], place },
  ];
  const norm = (name: string): readonly GlobalTensor[] =>
    ["weight", "bias"].map((part) => ({
      name: at(`${name}.${part}`),
      dtype,
      shape: [hidden],
      place,
    }));
  return [
    ...norm("norm1"),
    ...columns("qkv", 3 * hidden, 3),
    ...rows("proj", hidden),
    ...norm("norm2"),
    ...columns("fc1", 4 * hidden, 1),
    ...rows("fc2", 4 * hidden),
  ];
}

const weights: readonly GlobalTensor[] = [
  {
    name: "embedding",
    dtype,
    shape: [51_200, hidden],
    place: "ends",
    tensorParallel: { dim: 0 },
  },
  { name: "positions", dtype, shape: [2048, hidden], place: "first" },
  ...Array.from({ length: layers }, (_, layer) => layerWeights(layer)).flat(),
  { name: "final.weight", dtype, shape: [hidden], place: "last" },
  { name: "final.bias", dtype, shape: [hidden], place: "last" },
];
const tensors = [...weights, ...optimizerState(weights)];

function plan(from: ParallelLayout, to: ParallelLayout): void {
  readPlan(savePlan(tensors, from).index, tensors, to);
}

const layoutsOf = (
  partition: "buffer" | "tensor",
): readonly [from: ParallelLayout, to: ParallelLayout] => [
  defineLayout({ layers, tp: 8, pp: 64, dp: 6, zero: 1, partition }),
  defineLayout({ layers, tp: 8, pp: 32, vpp: 2, dp: 8, zero: 1, partition }),
];

const buffers = layoutsOf("buffer");
const rows = layoutsOf("tensor");

export const benchmarks = [
  {
    id: "checkpoint/reshard-plan-1t",
    what: "save and read plan of 10^12 parameters and Adam's states, 3,072 to 2,048 ranks, ZeRO-1 buffers",
    unit: "s",
    better: "lower",
    target: 5,
    time: (): void => plan(...buffers),
  },
  {
    id: "checkpoint/reshard-plan-1t-rows",
    what: "the same with every tensor's rows cut by ZeRO, as FSDP2 does",
    unit: "s",
    better: "lower",
    target: 5,
    time: (): void => plan(...rows),
  },
] as const;
