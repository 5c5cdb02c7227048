/**
 * How often to save. Failures come as a Poisson process of mean time `mtbf`; all times are seconds of
 * wall clock. Young and Daly are approximations of the optimum, the efficiency is exact.
 */
import type { Seconds } from "@trireme/core";
import { TriremeError } from "@trireme/core";

/** What a save costs. */
export interface SaveCost {
  /** Time that training stands still for a save; 0 or more. */
  readonly blocking: Seconds;
  /** From the end of that to the checkpoint being durable, training going on; default 0. */
  readonly overlapped?: Seconds;
  /** Share of its speed that training loses meanwhile, in [0, 1); default 0. */
  readonly slowdown?: number;
}

/** A save's cost, and what failures do. */
export interface FailureCost extends SaveCost {
  /** Mean time between failures of the whole job. */
  readonly mtbf: Seconds;
  /** From a failure to training again at the last durable checkpoint; default 0. Failures in it restart it. */
  readonly recovery?: Seconds;
}

/** Young's optimum √(2δM) (A first order approximation to the optimum checkpoint interval, CACM 1974). */
export function youngInterval(cost: Seconds, mtbf: Seconds): Seconds {
  check({ blocking: cost, mtbf });
  return Math.sqrt(2 * cost * mtbf);
}

/**
 * Daly's optimum of work between two saves (A higher order estimate of the optimum checkpoint interval
 * for restart dumps, FGCS 2006): √(2δM)·(1 + ⅓√(δ/2M) + ⅑·δ/2M) − δ below δ = 2M, else M.
 */
export function dalyInterval(cost: Seconds, mtbf: Seconds): Seconds {
  check({ blocking: cost, mtbf });
  if (cost >= 2 * mtbf) return mtbf;
  const x = cost / (2 * mtbf);
  return Math.sqrt(2 * cost * mtbf) * (1 + Math.sqrt(x) / 3 + x / 9) - cost;
}

/**
 * The period, save included, of greatest availability to first order: T = s + √(2·F·s + s²) for a save
 * of s and F = mtbf + recovery, which is where (1 − s/T) · mtbf / (F + T/2) has its maximum.
 */
export function availabilityPeriod(cost: Seconds, mtbf: Seconds, recovery: Seconds = 0): Seconds {
  check({ blocking: cost, mtbf, recovery });
  return cost + Math.sqrt(2 * (mtbf + recovery) * cost + cost * cost);
}

/**
 * The share of wall clock that becomes lasting work, exactly, when training runs `interval` between two
 * saves. A failure before a save is durable falls back to the one before it. With λ = 1/M, recovery R,
 * blocking b, overlapped w and the work u = interval − slowdown · w of one period, the expected time of
 * a period with all that failures add is e^(λ(R + w)) · (e^(λ(interval + b)) − 1) / λ: Daly's equation
 * 13, which it is for w = 0, times e^(λw), since with that chance the save behind training is lost
 * before it is durable and its period is run again.
 *
 * One save is in flight at a time: throws `CHECKPOINT` where interval + blocking < overlapped.
 */
export function checkpointEfficiency(interval: Seconds, cost: FailureCost): number {
  const { blocking, overlapped, slowdown, mtbf, recovery } = check(cost);
  if (!(interval > 0 && Number.isFinite(interval)))
    throw refuse(`interval ${interval}: it is a time above 0`);
  // As `optimalInterval` has it: the sum of its result and `blocking` may round down.
  if (interval < overlapped - blocking) {
    throw refuse(
      `interval ${interval} + blocking ${blocking} is shorter than overlapped ${overlapped}; one save is in flight at a time, use ${overlapped - blocking} or more`,
    );
  }
  const work = interval - slowdown * overlapped;
  if (work <= 0) return 0;
  const period = mtbf * Math.exp((recovery + overlapped) / mtbf);
  // An infinite period is one that never ends: nothing is ever saved.
  return work / (period * Math.expm1((interval + blocking) / mtbf));
}

/**
 * The interval of greatest `checkpointEfficiency`. Without overlap it is M · (1 + W(−e^(−1 − δ/M))), W
 * Lambert's function: the work x = τ/M at which x + δ/M + ln(1 − x) = 0; the work lost to slowdown counts
 * as cost. Where a save takes longer than that, one save in flight sets the interval.
 */
export function optimalInterval(cost: FailureCost): Seconds {
  const { blocking, overlapped, slowdown, mtbf } = check(cost);
  const lost = slowdown * overlapped;
  const shortest = Math.max(0, overlapped - blocking);
  const d = (blocking + lost) / mtbf;
  if (d === 0) {
    if (shortest > 0) return shortest;
    throw refuse("a save that costs nothing has no best interval; save every step");
  }
  return Math.max(shortest, mtbf * workRatio(d) + lost);
}

/**
 * Steps between two saves that keep their stall within `overhead` of training time and let one save end
 * before the next begins (CheckFreq, FAST 2021). `step` is the time of a training step.
 */
export function boundedSteps(o: SaveCost & { step: Seconds; overhead: number }): number {
  const { blocking, overlapped, slowdown } = check({ ...o, mtbf: 1 });
  if (!(o.step > 0 && Number.isFinite(o.step)))
    throw refuse(`step ${o.step}: it is a time above 0`);
  if (!(o.overhead > 0)) throw refuse(`overhead ${o.overhead}: it is a share above 0, as 0.035`);
  const stall = blocking + slowdown * overlapped;
  return Math.max(1, ceil(stall / (o.overhead * o.step)), ceil((overlapped - blocking) / o.step));
}

/** Rounds up, but not for what division alone has added. */
function ceil(x: number): number {
  const near = Math.round(x);
  return Math.abs(x - near) < 1e-9 * Math.max(1, near) ? near : Math.ceil(x);
}

/**
 * The root x in (0, 1) of x + d + ln(1 − x) = 0, by Newton for z = ln(1 − x), of which the left side is
 * concave: from the left, where −√(2d) − d lies, it climbs to the root and never past it.
 */
function workRatio(d: number): number {
  let z = -Math.sqrt(2 * d) - d;
  for (let i = 0; i < 100; i++) {
    const slope = -Math.expm1(z);
    const next = z - (z + slope + d) / slope;
    if (!(next > z)) break;
    z = next;
  }
  return -Math.expm1(z);
}

function check(cost: FailureCost): Required<FailureCost> {
  const { blocking, overlapped = 0, slowdown = 0, mtbf, recovery = 0 } = cost;
  for (const [name, value] of Object.entries({ blocking, overlapped, recovery })) {
    if (!(value >= 0 && Number.isFinite(value)))
      throw refuse(`${name} ${value}: it is a time of at least 0 seconds`);
  }
  if (!(mtbf > 0 && Number.isFinite(mtbf))) throw refuse(`mtbf ${mtbf}: it is a time above 0`);
  if (!(slowdown >= 0 && slowdown < 1)) throw refuse(`slowdown ${slowdown}: it is in [0, 1)`);
  return { blocking, overlapped, slowdown, mtbf, recovery };
}

function refuse(message: string): TriremeError {
  return new TriremeError("CHECKPOINT", message);
}
