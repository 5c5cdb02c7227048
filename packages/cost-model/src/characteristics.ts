/**
 * What a generation of accelerators sustains, as against what its datasheet says: a few numbers per
 * architecture, none per model, plan or source.
 *
 * - `matrix`, `quantised`: best product over all shapes / dense peak, mean of many runs on random
 *   data, from the mamf-finder table of stas00/ml-engineering (bf16: A100 0.81, H100 0.80, B200 0.78,
 *   B300 0.79, Gaudi 2 0.97, Gaudi 3 0.74; fp8: H100 0.71, B200 0.76, B300 0.75, Gaudi 2 0.96, Gaudi 3 0.77; the
 *   Gaudis' in its pull requests 117 and 118). CDNA 3: what AMD states for the MI300X, 708 and 1273 TFLOP/s (ROCm
 *   blogs, Measuring Max-Achievable FLOPs, part 2). CDNA 4: HipKittens' products on the MI355X, 1610 and 3327 TFLOP/s
 *   (arXiv 2511.08083, Tables 2 and 3).
 * - `attention`: FlashAttention-1, -2 and -3 and cuDNN in the figures of their papers, and for
 *   backward what is left of forward and backward together. FlashAttention-1 stands for Triton's kernel of 2023
 *   too, which was somewhat faster; its Hopper numbers follow from long-sequence rows of MosaicML's table. CDNA 4:
 *   AITER's, as HipKittens' authors measured it (forward 953 to 1009 TFLOP/s of long sequences on the MI350X,
 *   analysis/attn/fwd/plot.py; backward 1018 and 1169 on the MI355X, Table 1). Of CDNA 3, the Gaudis, TPUs and narrow
 *   heads on CDNA 4 they are assumptions. In 8 bits, of that peak: cuDNN under a mask at 8,192 tokens, 64 heads over 8
 *   of 128 (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results/*llama3.1*: forward and backward H200 964
 *   and 430, GB200 2047 and 1454, GB300 2897 and 1781 TFLOP/s), without what that length costs (`causalRamp`).
 * - `demand`: from the clock that a generation keeps in training under its power limit; one number
 *   each, set on H100 so that NeMo's bf16 rows have no bias, on B200 and GB300 so that Megatron-Bridge's dense 8-bit
 *   ones have next to none (75 % and 86 % of their clocks), and on A100 by its clock. On CDNA 3 by the clock that AMD
 *   states for products, 1207 MHz of 2100 on the MI300X at 750 W; on CDNA 4 as if products used each clock as well as
 *   there, 94 %, so that 0.64 of the peak are 68 % of the clock of an MI355X.
 * - `grouped`: DeepGEMM's grouped kernels on Hopper reach what its single ones do; PyTorch's on Blackwell, written
 *   for Hopper, half (torchao's grouped benchmarks on B200; its 8-bit kernels of a later release, measured alone, reach
 *   two thirds).
 * - `call`: a cuBLAS call from C++, a few microseconds of CUDA and as much of the library's.
 * - `memory`: a well-written elementwise kernel / datasheet bandwidth; casts to 8 bits on CDNA 4 as torchao measured
 *   them on the MI350X, 4.4 to 4.5 TB/s (pytorch/ao pull request 4290).
 * - `dispatch`: launching eager PyTorch layers from the hosts that such devices are sold in. A transformer
 *   layer of hidden 1024 forward, recomputed and backward is bound by it: about 3.5 ms on A100
 *   hosts whatever the microbatch (vTrain's measurements, MICRO 2024), 34 operators here.
 */
import { type Seconds, type Watts, us } from "@trireme/core";
import type { Accelerator } from "@trireme/topology";

/** Fractions of the dense peak at long sequences, [forward, backward]. */
export interface AttentionFractions {
  /** Head dimensions from 96 up. */
  readonly wide: readonly [number, number];
  readonly narrow: readonly [number, number];
}

/** Sustained fractions and fixed times of one architecture. */
export interface Characteristics {
  /** Of the dense peak, by a large matrix product. */
  readonly matrix: number;
  /** Of the dense peak of its format, by a large product of 8- or 4-bit operands. */
  readonly quantised: number;
  /** Of a single product's rate, by one kernel for the products of many groups. */
  readonly grouped: number;
  /** Whether single products store one tile behind the arithmetic of the next (`gemm-time.ts`). */
  readonly storesBehind: boolean;
  /** Whether products have tiles whose sides are no powers of two. */
  readonly unevenTiles: boolean;
  /** Whether products have tiles of 192 and 256 both ways; not where left out. */
  readonly largeTiles?: true;
  /** Of the dense peak, by flash attention. */
  readonly attention: AttentionFractions & {
    /** On 8-bit operands, of the peak in 8 bits; left out where it is not known, and then as fast as in 16. */
    readonly fp8?: readonly [number, number];
    /** Kernels of an earlier generation than the device's best. */
    readonly older: Readonly<Partial<Record<1 | 2 | 3, AttentionFractions>>>;
  };
  /**
   * Power that matrix products on random data would take at the full clock of the part in `power-limit.ts`; 0 where
   * unknown.
   */
  readonly demand: Watts;
  /** Of the memory bandwidth, by a kernel that streams. */
  readonly memory: number;
  /**
   * Whether products alone already run below the full clock: the fractions are then what the part in `power-limit.ts`
   * reaches under its limit, alone and in a step, and other parts reach more or less by their clocks. Left out: the
   * limit is met in a step only.
   */
  readonly throttled?: true;
  /** Side of the systolic arrays that products are padded to; none where left out. */
  readonly systolic?: number;
  /** The same of single memory-bound kernels, by "kind/form/pass", where they were measured; above 1 in a cache. */
  readonly streaming?: Readonly<Record<string, number>>;
  /** Between two kernels on the device: start, ramp and drain. */
  readonly gap: Seconds;
  /** Host time to launch one operator with its framework code; 0 where kernels are called directly. */
  readonly dispatch: Seconds;
  /** Host time of one more library call inside an operator: grouped products are a call for each group. */
  readonly call: Seconds;
}

const gpu = {
  demand: 0,
  quantised: 0.66,
  grouped: 1,
  storesBehind: false,
  unevenTiles: false,
  memory: 0.82,
  gap: us(3),
  dispatch: us(60),
  call: us(10),
};

const blackwell: Characteristics = {
  ...gpu,
  quantised: 0.74,
  grouped: 0.5,
  storesBehind: true,
  demand: 2200,
  matrix: 0.78,
  attention: {
    wide: [0.5, 0.5],
    narrow: [0.4, 0.4],
    fp8: [0.43, 0.31],
    older: { 2: { wide: [0.2, 0.2], narrow: [0.18, 0.18] } },
  },
};

/** Compilers lay out whole graphs: no operator is launched by itself. */
const compiled = {
  demand: 0,
  grouped: 1,
  storesBehind: false,
  unevenTiles: false,
  gap: us(2),
  dispatch: 0,
  call: 0,
};

/** 128 x 128 until the fifth generation (Austin et al., How to scale your model, chapter 2 and its appendix B). */
const tpu: Characteristics = {
  ...compiled,
  systolic: 128,
  matrix: 0.85,
  quantised: 0.7,
  attention: { wide: [0.5, 0.5], narrow: [0.4, 0.4], older: {} },
  memory: 0.85,
};

/** A matrix engine has 256 x 256 multipliers (Gaudi 3 white paper). */
const hpu: Characteristics = {
  ...compiled,
  systolic: 256,
  matrix: 0.74,
  quantised: 0.77,
  attention: { wide: [0.4, 0.4], narrow: [0.3, 0.3], older: {} },
  memory: 0.82,
};

const known: Readonly<Record<string, Characteristics>> = {
  volta: {
    ...gpu,
    demand: 340,
    dispatch: us(100),
    matrix: 0.78,
    attention: { wide: [0.5, 0.5], narrow: [0.45, 0.45], older: {} },
  },
  ampere: {
    ...gpu,
    demand: 480,
    dispatch: us(100),
    matrix: 0.81,
    attention: {
      wide: [0.7, 0.63],
      narrow: [0.6, 0.55],
      older: { 1: { wide: [0.5, 0.25], narrow: [0.45, 0.31] } },
    },
  },
  hopper: {
    ...gpu,
    quantised: 0.7,
    unevenTiles: true,
    demand: 1300,
    matrix: 0.8,
    attention: {
      wide: [0.6, 0.5],
      narrow: [0.47, 0.38],
      fp8: [0.51, 0.23],
      older: {
        1: { wide: [0.33, 0.18], narrow: [0.3, 0.22] },
        2: { wide: [0.365, 0.335], narrow: [0.325, 0.29] },
      },
    },
  },
  blackwell,
  "blackwell-ultra": {
    ...blackwell,
    demand: 2050,
    attention: { ...blackwell.attention, fp8: [0.61, 0.38] },
  },
  cdna2: { ...gpu, matrix: 0.6, attention: { wide: [0.3, 0.3], narrow: [0.25, 0.25], older: {} } },
  cdna3: {
    ...gpu,
    throttled: true,
    largeTiles: true,
    demand: 3330,
    matrix: 0.542,
    quantised: 0.487,
    attention: { wide: [0.35, 0.35], narrow: [0.3, 0.3], older: {} },
  },
  cdna4: {
    ...gpu,
    throttled: true,
    largeTiles: true,
    demand: 3930,
    matrix: 0.64,
    quantised: 0.66,
    streaming: { "activation/cast-fp8/forward": 0.55, "activation/cast-fp8/input-gradient": 0.55 },
    attention: { wide: [0.44, 0.43], narrow: [0.35, 0.34], older: {} },
  },
  gaudi2: { ...hpu, matrix: 0.97, quantised: 0.955 },
  gaudi3: { ...hpu, matrix: 0.74, quantised: 0.77 },
  "tpu-v6e": { ...tpu, systolic: 256 },
  "tpu-v7": { ...tpu, systolic: 256 },
};

const other: Readonly<Record<Accelerator["kind"], Characteristics>> = {
  gpu: { ...gpu, matrix: 0.7, attention: { wide: [0.4, 0.4], narrow: [0.35, 0.35], older: {} } },
  tpu,
  hpu,
  cpu: {
    demand: 0,
    matrix: 0.7,
    quantised: 0.7,
    attention: { wide: [0.35, 0.35], narrow: [0.35, 0.35], older: {} },
    memory: 0.7,
    grouped: 1,
    storesBehind: false,
    unevenTiles: false,
    gap: us(1),
    dispatch: 0,
    call: 0,
  },
};

/** Whether an accelerator is sold with a Grace processor on its board. */
export function withGrace(a: Accelerator): boolean {
  return /^g[hb]\d/.test(a.name);
}

/**
 * Host time on Grace over that of other hosts: Transformer Engine's linear layer takes 100 µs on GB200
 * (NVIDIA/TransformerEngine issue 2053; arXiv 2504.11750 finds GH200 bound by its processor up to four times larger
 * batches), an operator of `gpu` 60.
 */
const grace = 100 / 60;

/** The characteristics of an accelerator: its architecture's, or those of its kind, with the host it is sold with. */
export function characteristics(a: Accelerator): Characteristics {
  const own = known[a.architecture] ?? other[a.kind];
  return withGrace(a) ? (onGrace.get(own) ?? own) : own;
}

const onGrace: ReadonlyMap<Characteristics, Characteristics> = new Map(
  Object.values(known).map((c) => [
    c,
    { ...c, dispatch: grace * c.dispatch, call: grace * c.call },
  ]),
);
