/**
 * Which source each sample of the global order comes from, step by step, as weights move. The rule is
 * that of `blend` (Megatron-LM's): the source furthest behind its share is next. What it has to
 * remember is small, three numbers a source, so that a run goes on at any step on any number of ranks.
 */
import { TriremeError } from "@trireme/core";
import { checkSizes, furthestBehind } from "../blend.ts";
import { type MixturePoint, weightsAt } from "../mixture.ts";

/** What a mixture remembers: plain numbers, exact after JSON. */
export interface MixState {
  /** Samples drawn so far of all sources. */
  readonly position: number;
  /** Samples drawn of each source: its next position in its own order. */
  readonly taken: readonly number[];
  /** Where the weights last changed. */
  readonly since: number;
  /** Samples that were due of each source there; whole numbers only as long as weights stand still. */
  readonly due: readonly number[];
  /** The weights since then. */
  readonly weights: readonly number[];
}

/** A mixture of sources over the steps of a run. */
export interface MixOptions {
  /** Weights by step, as `weightsAt` reads them. One point is a constant mixture. */
  readonly schedule: readonly MixturePoint[];
  /** Samples of one epoch of each source; needed by "refuse" and "drop". */
  readonly sizes?: readonly number[];
  /**
   * What happens at the end of a source: its next epoch, an error, or it leaves the mixture and the
   * others keep their proportions. Default "repeat".
   */
  readonly exhausted?: "repeat" | "refuse" | "drop";
}

/** The samples of one step in global order. */
export interface MixDraw {
  /** Source of each sample. */
  readonly sources: Int32Array;
  /** Position of each sample in its source's own order; from the source's size on, of its next epochs. */
  readonly positions: Float64Array;
  readonly next: MixState;
}

/** Where a mixture of so many sources starts. */
export function startMix(sources: number): MixState {
  const none = new Array<number>(sources).fill(0);
  return { position: 0, taken: none, since: 0, due: none, weights: none };
}

/**
 * Draws the `count` samples of `step`. Pure: the same state gives the same draw. O(count · sources).
 * @throws TriremeError "MIX" where a source ends that must not, or all have ended.
 */
export function drawMix(
  options: MixOptions,
  state: MixState,
  step: number,
  count: number,
): MixDraw {
  const { schedule, sizes, exhausted = "repeat" } = options;
  const { length } = state.taken;
  const wanted = weightsAt(schedule, step);
  if (wanted.length !== length)
    throw new TriremeError("MIX", `${wanted.length} weights for ${length} sources`);
  if (sizes === undefined && exhausted !== "repeat")
    throw new TriremeError("MIX", `exhausted "${exhausted}" needs the sizes of the sources`);
  if (sizes !== undefined && sizes.length !== length)
    throw new TriremeError("MIX", `${sizes.length} sizes for ${length} sources`);
  checkSizes("MIX", sizes);

  const taken = [...state.taken];
  let { position, since } = state;
  let { due, weights } = state;
  const ended = (d: number): boolean => exhausted !== "repeat" && taken[d]! >= sizes![d]!;
  /** From here on other weights; who was behind stays behind. */
  const turn = (to: readonly number[]): void => {
    if (to.every((weight, d) => weight === weights[d])) return;
    due = due.map((samples, d) => samples + weights[d]! * (position - since));
    since = position;
    weights = to;
  };
  turn(exhausted === "drop" ? openShares(wanted, ended, step) : wanted);

  const sources = new Int32Array(count);
  const positions = new Float64Array(count);
  for (let i = 0; i < count; i++, position++) {
    let source = furthestBehind(weights, Math.max(position - since, 1), taken, due);
    if (ended(source)) {
      if (exhausted === "refuse") {
        throw new TriremeError(
          "MIX",
          `source ${source} has ${sizes![source]} samples, but step ${step} wants another of it; lower its weight, or use exhausted "repeat" or "drop"`,
        );
      }
      weights = openShares(wanted, ended, step);
      // The rest start level, as in a blend.
      due = [...taken];
      since = position;
      source = furthestBehind(weights, 1, taken, due);
    }
    sources[i] = source;
    positions[i] = taken[source]!;
    taken[source]!++;
  }
  return { sources, positions, next: { position, taken, since, due, weights } };
}

function openShares(
  wanted: readonly number[],
  ended: (source: number) => boolean,
  step: number,
): readonly number[] {
  const open = wanted.map((weight, d) => (ended(d) ? 0 : weight));
  const sum = open.reduce((total, weight) => total + weight, 0);
  if (sum === 0)
    throw new TriremeError(
      "MIX",
      `every source with a weight has ended before step ${step} is full`,
    );
  return open.map((weight) => weight / sum);
}
