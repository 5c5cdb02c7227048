/**
 * Loaders of each source over time: OVERLORD's AutoScaler (arXiv:2504.09844). Loaders are added before
 * queues build, from the weights a schedule will have by the time a loader is up as well as from those
 * that were seen; they are released only after weights have been low for a while, as starting one is
 * dear and holding one is not.
 */
import { TriremeError } from "@trireme/core";
import { type SourceProfile, scaleSources, smoothWeights } from "../source-scaling.ts";

/** How the scaler behaves. */
export interface AutoScalerOptions {
  readonly sources: readonly SourceProfile[];
  /** Samples a second that training takes. */
  readonly samplesPerSecond: number;
  /** Spare capacity, as a factor. Default 1.2. */
  readonly headroom?: number;
  /** How much the newest weights count in their moving average. Default 0.1. */
  readonly rate?: number;
  /** Observations in a row that must ask for fewer before loaders are released. Default 20. */
  readonly patience?: number;
}

/** What the scaler remembers; plain data. */
export interface AutoScalerState {
  readonly weights: readonly number[];
  readonly loaders: readonly number[];
  /** Observations in a row that asked for fewer, by source. */
  readonly low: readonly number[];
}

/** What to change for one source. */
export interface ScalingChange {
  readonly source: number;
  readonly from: number;
  readonly to: number;
}

/** The state to start with: what the first weights need. */
export function startScaler(
  options: AutoScalerOptions,
  weights: readonly number[],
): AutoScalerState {
  return {
    weights,
    loaders: needed(options, weights),
    low: weights.map(() => 0),
  };
}

/**
 * Takes the weights of a step, and those ahead where a schedule tells them; gives the new state and
 * what changes. A source that grows does so at once to what the highest of now, average and ahead asks
 * for; one that shrinks goes to what all of them ask for, after `patience` observations.
 */
export function autoScale(
  options: AutoScalerOptions,
  state: AutoScalerState,
  now: readonly number[],
  ahead: readonly number[] = now,
): { readonly state: AutoScalerState; readonly changes: readonly ScalingChange[] } {
  const { rate = 0.1, patience = 20 } = options;
  if (!Number.isInteger(patience) || patience < 1)
    throw new TriremeError("SCALING", `patience ${patience} is not a positive integer`);
  const weights = smoothWeights(state.weights, now, rate);
  const wanted = [weights, now, ahead].map((some) => needed(options, some));
  const low = [...state.low];
  const changes: ScalingChange[] = [];
  const loaders = state.loaders.map((from, source) => {
    const want = Math.max(...wanted.map((counts) => counts[source]!));
    low[source] = want < from ? low[source]! + 1 : 0;
    const to = want > from || low[source] >= patience ? want : from;
    if (to !== from) {
      changes.push({ source, from, to });
      low[source] = 0;
    }
    return to;
  });
  return { state: { weights, loaders, low }, changes };
}

function needed(options: AutoScalerOptions, weights: readonly number[]): readonly number[] {
  const { sources, samplesPerSecond, headroom = 1.2 } = options;
  // An average that fades never reaches 0; a millionth is as good as gone.
  const cleared = weights.map((weight) => (weight < 1e-6 ? 0 : weight));
  return [...scaleSources({ sources, weights: cleared, samplesPerSecond, headroom }).loaders];
}
