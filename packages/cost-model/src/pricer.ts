/** Prices of single operators: from what a device is, or from what was measured on it. */
import { type FlopsPerSecond, type Seconds, TriremeError, nearestName } from "@trireme/core";
import { type Accelerator, type Precision, emulates, peakOf } from "@trireme/topology";
import type { Operator } from "@trireme/workload";
import { attentionFractions, attentionRamp } from "./attention-time.ts";
import { type Characteristics, characteristics } from "./characteristics.ts";
import { fill, gemmTime } from "./gemm-time.ts";
import { hostUpdate } from "./host-update.ts";
import { aloneClock } from "./power-limit.ts";
import { systolicFlops } from "./systolic.ts";

/** Gives the time of operators. */
export interface Pricer {
  /** One execution on one device, alone. */
  operator(op: Operator): Seconds;
  /**
   * Host time to launch it: a pass cannot be shorter than the sum of these. Left out: nothing.
   */
  dispatch?(op: Operator): Seconds;
  /**
   * How long a device has nothing to do when its host reads a result of it and launches what follows. Left out: not at
   * all.
   */
  readonly roundTrip?: Seconds;
}

/** What a roofline is told beside the device. */
export interface RooflineOptions {
  /**
   * Fraction of the clock that characteristics were measured at; a kernel alone's when left out. A step holds
   * `sustainedClock`.
   */
  readonly clock?: number;
  /** Devices that share their host's processors and memory, where the optimizer runs there; 8 when left out. */
  readonly devices?: number;
  /** What the device sustains, where that was measured (`calibrate`); its architecture's when left out. */
  readonly characteristics?: Characteristics;
}

/**
 * Framework operators of a router (scores, choice, one-hot maps, counts, auxiliary loss) and of each permutation
 * (indices, counts, copies), as Megatron-LM's moe/router.py and token_dispatcher.py call them.
 */
const routingOperators = 24;
const permutationOperators = 6;

/**
 * The same of rotary embedding without a kernel for it, forward and backward, by rope_utils.py: for queries and for
 * keys cosine and sine with scale and cast, a turned copy in two, two products, a sum and a join. Of latent attention's
 * heads beside that, by multi_latent_attention.py: both are de-interleaved first and joined with what is not rotated,
 * and values laid apart.
 */
const rotaryOperators = [24, 12] as const;
const latentOperators = [5, 12] as const;

/** Operators of a framework that an operator here stands for: each is launched. */
function launches(op: Operator): number {
  if (op.kind === "routing") return routingOperators;
  const back = op.pass === "input-gradient" ? 1 : 0;
  if (op.form === "rotary-eager") return rotaryOperators[back];
  if (op.form === "latent-eager") return latentOperators[back];
  return op.kind === "permutation" && op.form !== "pad" ? permutationOperators : 1;
}

/** Gaps that an operator takes on a device: one before each kernel. */
export function gaps(a: Accelerator, op: Operator): number {
  return a.kind === "gpu" ? launches(op) : 1;
}

/** The format of a product's quantised operands; undefined for others. */
function quantisedForm(form: string): "fp8" | "int8" | "fp4" | undefined {
  if (form.startsWith("fp8")) return "fp8";
  if (form.startsWith("int8")) return "int8";
  return form.startsWith("fp4") ? "fp4" : undefined;
}

/** What kernels run on: a device, as far as it sustains its datasheet. */
export interface Kernels {
  readonly accelerator: Accelerator;
  /** Dense peak in the plan's precision. */
  readonly peak: FlopsPerSecond;
  readonly characteristics: Characteristics;
  /** Fraction of the full clock. */
  readonly clock: number;
  /** Devices of its host. */
  readonly devices: number;
  /**
   * Bytes moved to have BF16 operands in fp32, where it is emulated: a byte of theirs is two written and read, and
   * back.
   */
  readonly converted: number;
}

/**
 * What a device computes with; throws TriremeError "PRECISION" when it does not compute in `precision`.
 */
export function kernelsOf(
  a: Accelerator,
  precision: Precision,
  options: RooflineOptions = {},
): Kernels {
  const peak = peakOf(a, precision);
  if (peak === undefined) {
    const near =
      precision === "bf16" && a.peak.fp16 !== undefined ? "fp16" : Object.keys(a.peak).join(", ");
    throw new TriremeError("PRECISION", `${a.name} has no ${precision} arithmetic; use ${near}`);
  }
  return {
    accelerator: a,
    peak,
    characteristics: options.characteristics ?? characteristics(a),
    clock: options.clock ?? aloneClock(a),
    devices: options.devices ?? 8,
    converted: precision === "bf16" && emulates(a, precision) ? 4 : 0,
  };
}

/** Time of an operator's kernel without the gap before it: by tiles and waves, by arithmetic, by bytes. */
export function kernelTime(on: Kernels, op: Operator): Seconds {
  const { accelerator: a, peak, clock, characteristics: c } = on;
  const bandwidth = a.memoryBandwidth * c.memory;
  if (op.kind === "gemm" || op.kind === "grouped-gemm") {
    const [batch, rows, n, k] = op.shape;
    // Each group has its part of the rows.
    const m = op.kind === "gemm" ? rows! : rows! / batch!;
    const quantised = quantisedForm(op.form);
    const fused = op.form.endsWith("-fused");
    const share = fused ? c.grouped : 1;
    const rate =
      share *
      clock *
      (quantised === undefined ? peak * c.matrix : (peakOf(a, quantised) ?? 0) * c.quantised);
    if (rate === 0) throw new TriremeError("PRECISION", `${a.name} has no ${op.form} arithmetic`);
    if (a.kind !== "gpu") {
      const work =
        c.systolic === undefined ? op.flops : systolicFlops(c.systolic, batch!, m, n!, k!);
      return Math.max(work / rate, op.bytes / bandwidth);
    }
    const units = {
      rate,
      multiprocessors: a.multiprocessors,
      bandwidth,
      storesBehind: c.storesBehind && !fused,
      unevenTiles: c.unevenTiles,
      largeTiles: c.largeTiles === true,
    };
    return gemmTime(units, batch!, m, n!, k!, op.bytes);
  }
  if (op.kind === "attention") {
    const rate = clock * attentionRate(on, op);
    // Plain attention multiplies the narrow matrices of single heads, then reads and writes scores.
    if (op.form.startsWith("plain")) return op.flops / rate + op.bytes / bandwidth;
    return Math.max((op.flops / rate) * attentionRamp(a, op), op.bytes / bandwidth);
  }
  if (op.kind === "scan") return scanTime(on, op);
  if (op.form === "adamw-host") return hostUpdate(a, op, on.devices);
  const measured = c.streaming?.[streamOf(op)];
  return op.bytes / (measured === undefined ? bandwidth : a.memoryBandwidth * measured);
}

/**
 * A scan's product by its chunks: many small ones, whose tiles and waves cost as a library's do. What runs in order
 * waits at each step for its operands. These kernels are Triton's of Hopper's time, which on Blackwell reach what
 * grouped products do.
 */
function scanTime(on: Kernels, op: Operator): Seconds {
  const { accelerator: a, peak, clock, characteristics: c } = on;
  const bandwidth = a.memoryBandwidth * c.memory;
  const rate = clock * peak * c.matrix;
  const [batch, m, n, k] = op.shape;
  if (a.kind !== "gpu") {
    const alone = c.systolic === undefined || k === 0;
    const work = alone ? op.flops : systolicFlops(c.systolic, batch!, m!, n!, k!);
    return Math.max(work / rate, op.bytes / bandwidth);
  }
  const { multiprocessors } = a;
  const { storesBehind, unevenTiles, largeTiles = false } = c;
  const units = { rate, multiprocessors, bandwidth, storesBehind, unevenTiles, largeTiles };
  const step = Number(/carry\D*(\d+)$/.exec(op.form)?.[1] ?? 0);
  const time = gemmTime(units, batch!, m!, n!, Math.max(1, k!), op.bytes, step > 0);
  return Math.max(time, step > 0 ? (fill * k!) / step : 0) / c.grouped;
}

/** At long sequences and the full clock. */
function attentionRate(
  { accelerator: a, peak, characteristics: c }: Kernels,
  op: Operator,
): number {
  const pass = op.pass === "input-gradient" ? 1 : 0;
  const { wide, narrow } = attentionFractions(c, op.form);
  const own = op.shape[4]! >= 96 ? wide : narrow;
  if (!op.form.includes("fp8")) return peak * own[pass];
  const eight = peakOf(a, "fp8");
  if (eight === undefined) throw new TriremeError("PRECISION", `${a.name} has no fp8 arithmetic`);
  const { fp8 } = c.attention;
  // Narrow heads lose in 8 bits what they lose in 16.
  return fp8 === undefined ? peak * own[pass] : (eight * fp8[pass] * own[pass]) / wide[pass];
}

/** Time to have an operator's operands in the precision that it is really computed in. */
function conversionTime(
  { accelerator: a, characteristics: c, converted }: Kernels,
  op: Operator,
): Seconds {
  // Moments and masters are in fp32 as they are.
  return op.pass === "update" ? 0 : (converted * op.bytes) / (a.memoryBandwidth * c.memory);
}

/** The name under which a memory-bound kernel's share of the bandwidth is kept where it was measured. */
export function streamOf(op: Operator): string {
  return `${op.kind}/${op.form}/${op.pass === "recompute" ? "forward" : op.pass}`;
}

/**
 * Times by mechanism: products by tiles and waves (`gemmTime`), attention by its arithmetic and
 * sequence length, everything else by the bytes it moves; memory traffic bounds each from below.
 * Throws TriremeError "PRECISION" when the accelerator does not compute in `precision`.
 */
export function rooflinePricer(
  a: Accelerator,
  precision: Precision,
  options: RooflineOptions = {},
): Pricer {
  const kernels = kernelsOf(a, precision, options);
  const c = kernels.characteristics;
  const known = new Map<string, { readonly op: Operator; readonly time: Seconds }>();
  return {
    // The operator that reads, and the next.
    roundTrip: 2 * c.dispatch,
    operator(op) {
      const found = known.get(op.key);
      // Plans that accumulate in another precision, say, move other bytes under the same key.
      if (found !== undefined && found.op.bytes === op.bytes && found.op.flops === op.flops) {
        return found.time;
      }
      const time = kernelTime(kernels, op) + conversionTime(kernels, op) + c.gap * gaps(a, op);
      known.set(op.key, { op, time });
      return time;
    },
    dispatch(op) {
      if (launches(op) > 1) return c.dispatch * launches(op);
      // A product and a sum for each expert forward, five elementary operations backward.
      if (op.form === "expert-bias") {
        return c.dispatch + c.call * (op.shape[2]! * (op.pass === "input-gradient" ? 5 : 2) - 1);
      }
      if (op.kind !== "grouped-gemm" || op.form.endsWith("-fused")) return c.dispatch;
      // Quantised, each group's two operands are cast before its product.
      const calls = quantisedForm(op.form) === undefined ? 1 : 3;
      return c.dispatch + c.call * (calls * op.shape[0]! - 1);
    },
  };
}

/**
 * Times from a table by `Operator.key`; a key that is not in it throws TriremeError "UNMEASURED"
 * with the nearest key that is.
 */
export function measuredPricer(table: ReadonlyMap<string, Seconds>): Pricer {
  return {
    operator(op) {
      const time = table.get(op.key);
      if (time === undefined) {
        const near = nearestName(op.key, table.keys());
        throw new TriremeError(
          "UNMEASURED",
          `no measured time for ${op.key} among ${table.size}; measure it${near === undefined ? "" : ` (nearest: ${near})`}`,
        );
      }
      return time;
    },
  };
}
