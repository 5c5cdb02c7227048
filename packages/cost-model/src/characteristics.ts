/**
 * What a generation of accelerators sustains, as against what its datasheet says: a few fractions
 * per architecture, each from kernels measured alone. No training run is fitted here.
 *
 * - `matrix`: best bf16 product over all shapes / dense peak, mean of many runs on random data, from
 *   stas00/ml-engineering's mamf-finder table (A100 0.81, H100 0.80, B200 0.78, MI300X 0.51); parts that
 *   meet their power limit lose a little more in a training step, which multiplies without pause.
 * - `attention`: FlashAttention-2's asymptote in its own figures (A100 203, H100 338 TFLOP/s forward
 *   and backward, head dimension 128; 176 and 296 at 64); Hopper's tuned kernels (cuDNN,
 *   FlashAttention-3) reach about 0.55.
 * - `memory`: a well-written elementwise kernel / datasheet bandwidth.
 * - `dispatch`: launching eager PyTorch layers from the hosts that such devices are sold in. A transformer
 *   layer of hidden 1024 forward, recomputed and backward is bound by it: about 3.5 ms on A100
 *   hosts whatever the microbatch (vTrain's measurements, MICRO 2024), 34 operators here.
 */
import { type Seconds, us } from "@trireme/core";
import type { Accelerator } from "@trireme/topology";

/** Sustained fractions and fixed times of one architecture. */
export interface Characteristics {
  /** Of the dense peak, by a large matrix product. */
  readonly matrix: number;
  /** Of the dense peak of its format, by a large product of 8- or 4-bit operands. */
  readonly quantised: number;
  /** Of the dense peak, by flash attention: head dimensions of 128 and more, and 64. */
  readonly attention: { readonly wide: number; readonly narrow: number };
  /** Of the memory bandwidth, by a kernel that streams. */
  readonly memory: number;
  /** Between two kernels on the device: start, ramp and drain. */
  readonly gap: Seconds;
  /** Host time to launch one operator with its framework code; 0 where kernels are called directly. */
  readonly dispatch: Seconds;
}

const gpu = { quantised: 0.66, memory: 0.82, gap: us(3), dispatch: us(60) };

const known: Readonly<Record<string, Characteristics>> = {
  volta: { ...gpu, dispatch: us(100), matrix: 0.78, attention: { wide: 0.5, narrow: 0.45 } },
  ampere: { ...gpu, dispatch: us(100), matrix: 0.81, attention: { wide: 0.65, narrow: 0.56 } },
  hopper: { ...gpu, matrix: 0.74, attention: { wide: 0.5, narrow: 0.38 } },
  blackwell: { ...gpu, matrix: 0.74, attention: { wide: 0.5, narrow: 0.4 } },
  cdna2: { ...gpu, matrix: 0.6, attention: { wide: 0.3, narrow: 0.25 } },
  cdna3: { ...gpu, matrix: 0.51, attention: { wide: 0.35, narrow: 0.3 } },
};

const other: Readonly<Record<Accelerator["kind"], Characteristics>> = {
  gpu: { ...gpu, matrix: 0.7, attention: { wide: 0.4, narrow: 0.35 } },
  tpu: {
    matrix: 0.85,
    quantised: 0.7,
    attention: { wide: 0.5, narrow: 0.4 },
    memory: 0.85,
    gap: us(2),
    dispatch: 0,
  },
  cpu: {
    matrix: 0.7,
    quantised: 0.7,
    attention: { wide: 0.35, narrow: 0.35 },
    memory: 0.7,
    gap: us(1),
    dispatch: 0,
  },
};

/** The characteristics of an accelerator: its architecture's, or those of its kind. */
export function characteristics(a: Accelerator): Characteristics {
  return known[a.architecture] ?? other[a.kind];
}
