/**
 * Training on nanoGPT's CPU setting (4 layers, 4 heads, 128 wide, 64 tokens, 12 samples a step): one
 * rank beside a plain PyTorch loop and TensorFlow.js on one thread each, the same model from the same
 * weights on the same batches; and two data-parallel ranks on two cores. One rank and its peers are
 * timed in CPU seconds of the median step, two ranks by the clock on the wall.
 */
import { embeddedRuntime } from "@trireme/engine";
import type { KernelChoice } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import { nanoGpt, nanoGptBatch, rateOf, samples, sequence } from "../test/reference/nano-gpt.ts";
import { loadTensorFlow, trainByTensorFlow } from "../test/reference/tensorflow.ts";
import { torchAdvice, torchPython, trainByTorch } from "../test/reference/torch.ts";

const steps = 24;

/** What training by one library gave. */
interface Training {
  readonly losses: readonly number[];
  /** Of each step. */
  readonly seconds: readonly number[];
}

interface OurTraining extends Training {
  readonly wall: readonly number[];
  readonly first: Snapshot;
}

async function train(kernels: KernelChoice, dp = 1): Promise<OurTraining> {
  const run = nanoGpt({ kernels, dp });
  const runtime = embeddedRuntime();
  try {
    await runtime.start(run);
    const first = await runtime.snapshot();
    const [losses, seconds, wall]: [number[], number[], number[]] = [[], [], []];
    for (let step = 0; step < steps; step++) {
      const batch = nanoGptBatch(step);
      const begin = process.cpuUsage();
      const result = await runtime.step({ step, batch, learningRate: rateOf(run, step) });
      const { user, system } = process.cpuUsage(begin);
      seconds.push((user + system) / 1e6);
      wall.push(result.seconds);
      losses.push(result.loss);
    }
    return { losses, seconds, wall, first };
  } finally {
    await runtime.stop();
  }
}

/** Done once a run, however many figures use it. */
function once<T>(what: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= what());
}

const ours = {
  wasm: once(() => train("wasm")),
  fused: once(() => train("fused")),
  native: once(() => train("native")),
};
const twoRanks = once(() => train("wasm", 2));

const torch = once(async (): Promise<Training | undefined> => {
  const python = torchPython();
  if (python === undefined) {
    console.log(torchAdvice);
    return undefined;
  }
  const { first, losses } = await ours.wasm();
  return checked(trainByTorch(python, nanoGpt(), first, steps), losses, steps);
});

const tensorflow = once(async (): Promise<Training> => {
  const tf = await loadTensorFlow();
  const { first, losses } = await ours.wasm();
  // Its update has no decay and no clipping: after the first the losses are not ours.
  return checked(trainByTensorFlow(tf, nanoGpt(), first, 3), losses, 1);
});

/** A peer is one only if it computes the same: its first `count` losses must be ours. */
function checked(peer: Training, losses: readonly number[], count: number): Training {
  for (let step = 0; step < count; step++) {
    const [theirs, own] = [peer.losses[step]!, losses[step]!];
    if (Math.abs(theirs - own) > 1e-3) {
      throw new Error(`the peer's loss ${theirs} of step ${step} is not ours, ${own}`);
    }
  }
  return peer;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

const tokens = samples * sequence;

function tokensPerSecond(training: Training | undefined): number | undefined {
  return training && tokens / median(training.seconds);
}

/** Speed of our training over a peer's; undefined where the peer is missing. */
async function over(
  own: () => Promise<Training>,
  peer: () => Promise<Training | undefined>,
): Promise<number | undefined> {
  const [theirs, mine] = [await peer(), await own()];
  return theirs && median(theirs.seconds) / median(mine.seconds);
}

/** A peer that is not installed gives no figure. */
async function ifInstalled<T>(what: () => Promise<T>): Promise<T | undefined> {
  try {
    return await what();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "MODULE_NOT_FOUND" || code === "NATIVE_GEMM" || code === "FUSED_GEMM") {
      return undefined;
    }
    throw error;
  }
}

const setting = "nanoGPT's CPU setting, one rank";
const torchName = "PyTorch 2.13.0, one thread";
const torchSpeed = async (): Promise<number | undefined> => tokensPerSecond(await torch());

export const benchmarks = [
  {
    id: "engine/train-one-rank",
    what: `tokens trained on in a CPU second, ${setting}`,
    unit: "tokens/s",
    better: "higher",
    target: null,
    measure: async (): Promise<number | undefined> => tokensPerSecond(await ours.wasm()),
    peer: { name: torchName, measure: torchSpeed },
  },
  {
    id: "engine/train-fused",
    what: `the same with fused multiply-adds (relaxed SIMD)`,
    unit: "tokens/s",
    better: "higher",
    target: null,
    measure: (): Promise<number | undefined> =>
      ifInstalled(async () => tokensPerSecond(await ours.fused())),
    peer: {
      name: "@tensorflow/tfjs 4.22.0 with its WebAssembly backend",
      measure: async (): Promise<number | undefined> => tokensPerSecond(await tensorflow()),
    },
  },
  {
    id: "engine/train-native",
    what: `the same with the products of the system's OpenBLAS`,
    unit: "tokens/s",
    better: "higher",
    target: null,
    measure: (): Promise<number | undefined> =>
      ifInstalled(async () => tokensPerSecond(await ours.native())),
    peer: { name: torchName, measure: torchSpeed },
  },
  {
    id: "engine/train-default-over-torch",
    what: `speed over PyTorch on one thread, ${setting}, the default kernels (no fused multiply-adds)`,
    unit: "ratio",
    better: "higher",
    target: 0.4,
    measure: (): Promise<number | undefined> => over(ours.wasm, torch),
  },
  {
    id: "engine/train-wasm-over-torch",
    what: `speed over PyTorch on one thread, ${setting}, WebAssembly with fused multiply-adds`,
    unit: "ratio",
    better: "higher",
    target: 0.4,
    measure: (): Promise<number | undefined> => ifInstalled(() => over(ours.fused, torch)),
  },
  {
    id: "engine/train-native-over-torch",
    what: `speed over PyTorch on one thread, ${setting}, OpenBLAS`,
    unit: "ratio",
    better: "higher",
    target: 0.9,
    measure: (): Promise<number | undefined> => ifInstalled(() => over(ours.native, torch)),
  },
  {
    id: "engine/train-over-tensorflow",
    what: `speed over TensorFlow.js (WebAssembly, one-hot embedding), ${setting}`,
    unit: "ratio",
    better: "higher",
    target: 4,
    measure: (): Promise<number | undefined> => ifInstalled(() => over(ours.wasm, tensorflow)),
  },
  {
    id: "engine/data-parallel-speedup",
    what: "speed of two data-parallel ranks over one on two cores, nanoGPT's CPU setting",
    unit: "ratio",
    better: "higher",
    target: 1.6,
    measure: async (): Promise<number> =>
      median((await ours.wasm()).wall) / median((await twoRanks()).wall),
  },
] as const;
