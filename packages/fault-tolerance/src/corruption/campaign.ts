/**
 * Fault-injection campaigns: how often a fault in each kind of instruction ends badly (IVF), what that
 * makes of the model (MVF = Σ share of dynamic instructions × IVF), and what detectors see of it.
 */
import { TriremeError, type Rng, createRng } from "@trireme/core";
import { type BitClass, bitClasses } from "./bits.ts";

/** No effect on the result; a wrong result with no sign of it; a result that shows itself (NaN, crash). */
export type Outcome = "masked" | "corrupt" | "detected";

/** One run of the program: what came of it and which detectors spoke. */
export interface TrialResult {
  readonly outcome: Outcome;
  readonly detectors: Iterable<string>;
}

/** A fault: the n-th dynamic instruction of a kind has a bit of a class flipped in its result. */
export interface TrialFault {
  readonly instruction: string;
  readonly occurrence: number;
  readonly bits: BitClass;
}

export interface CampaignOptions {
  /** Dynamic instructions of one run, by kind. */
  readonly instructions: Readonly<Record<string, number>>;
  /** Runs for each kind and bit class. */
  readonly trials: number;
  /** Runs without a fault, for the false alarms. */
  readonly clean: number;
  readonly seed: number;
  /** Runs the program. The rng is the trial's own: the bit within the class, the input. */
  readonly run: (fault: TrialFault | undefined, rng: Rng) => TrialResult;
}

/** Trials of one kind of instruction and bit class. */
export interface CampaignCell {
  readonly instruction: string;
  readonly bits: BitClass;
  readonly trials: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Trials in which each detector spoke, of those that were not masked. */
  readonly caught: ReadonlyMap<string, number>;
}

export interface Campaign {
  readonly cells: readonly CampaignCell[];
  readonly clean: number;
  /** Clean runs in which each detector spoke. */
  readonly falseAlarms: ReadonlyMap<string, number>;
  readonly instructions: Readonly<Record<string, number>>;
}

/**
 * Runs the campaign: instructions × bit classes × trials. The same seed gives the same campaign.
 * @throws TriremeError "CAMPAIGN" on no instruction, or counts that are not whole numbers in range.
 */
export function runCampaign(options: CampaignOptions): Campaign {
  const { instructions, trials, clean, seed, run } = options;
  const kinds = Object.entries(instructions);
  for (const [name, value] of [...kinds, ["trials", trials] as const]) {
    if (Number.isInteger(value) && value >= 1 && value <= 2 ** 32) continue;
    throw new TriremeError("CAMPAIGN", `${name} = ${value}: use an integer of 1..2^32`);
  }
  if (kinds.length === 0 || !(Number.isInteger(clean) && clean >= 0)) {
    throw new TriremeError(
      "CAMPAIGN",
      `${kinds.length} kinds of instruction and ${clean} clean runs: use 1 and 0 or more`,
    );
  }
  const root = createRng(seed);
  const cells = kinds.flatMap(([instruction, count], i) =>
    bitClasses.map((bits, j): CampaignCell => {
      const outcomes = { masked: 0, corrupt: 0, detected: 0 };
      const caught = new Map<string, number>();
      const stream = root.fork(i * bitClasses.length + j + 1);
      for (let trial = 0; trial < trials; trial++) {
        const rng = stream.fork(trial);
        const fault = { instruction, occurrence: rng.integer(count), bits };
        const { outcome, detectors } = run(fault, rng);
        outcomes[outcome]++;
        if (outcome !== "masked") tally(caught, detectors);
      }
      return { instruction, bits, trials, outcomes, caught };
    }),
  );
  const falseAlarms = new Map<string, number>();
  const stream = root.fork(0);
  for (let i = 0; i < clean; i++) tally(falseAlarms, run(undefined, stream.fork(i)).detectors);
  return { cells, clean, falseAlarms, instructions };
}

/** Weight of each bit class: bits of the class in the format, for single flips anywhere. */
export type BitWeights = Readonly<Record<BitClass, number>>;

/**
 * Instruction vulnerability factor: chance that one fault in the instruction ends badly (a corrupt
 * result, or one that shows itself), with bit classes weighted (float32's widths by default).
 */
export function instructionVulnerability(
  campaign: Campaign,
  instruction: string,
  weights: BitWeights = { sign: 1, exponent: 8, "high-mantissa": 12, "low-mantissa": 11 },
): number {
  const cells = campaign.cells.filter((each) => each.instruction === instruction);
  if (cells.length === 0) {
    throw new TriremeError("CAMPAIGN", `the campaign has no instruction "${instruction}"`);
  }
  let [bad, all] = [0, 0];
  for (const { bits, trials, outcomes } of cells) {
    bad += (weights[bits] * (trials - outcomes.masked)) / trials;
    all += weights[bits];
  }
  if (!(all > 0 && bad >= 0)) {
    throw new TriremeError(
      "CAMPAIGN",
      `weights of the bits of ${instruction} are ${all} together: use 0 or more each, above 0 together`,
    );
  }
  return bad / all;
}

/** Model vulnerability factor: Σ over instructions of their share of all × their vulnerability. */
export function modelVulnerability(campaign: Campaign, weights?: BitWeights): number {
  const total = Object.values(campaign.instructions).reduce((a, b) => a + b, 0);
  return Object.entries(campaign.instructions).reduce(
    (sum, [name, count]) =>
      sum + (count / total) * instructionVulnerability(campaign, name, weights),
    0,
  );
}

export interface DetectorScore {
  /** Share of the bad outcomes that it caught, by bit class; undefined where there was none. */
  readonly recall: Readonly<Record<BitClass, number | undefined>>;
  /** Share of clean runs in which it spoke. */
  readonly falsePositives: number;
}

/** Recall by bit class over all instructions, and false positives, of one detector. */
export function detectorScore(campaign: Campaign, detector: string): DetectorScore {
  const recall = (bits: BitClass): number | undefined => {
    let [bad, caught] = [0, 0];
    for (const cell of campaign.cells) {
      if (cell.bits !== bits) continue;
      bad += cell.trials - cell.outcomes.masked;
      caught += cell.caught.get(detector) ?? 0;
    }
    return bad === 0 ? undefined : caught / bad;
  };
  return {
    recall: {
      sign: recall("sign"),
      exponent: recall("exponent"),
      "high-mantissa": recall("high-mantissa"),
      "low-mantissa": recall("low-mantissa"),
    },
    falsePositives:
      campaign.clean === 0 ? 0 : (campaign.falseAlarms.get(detector) ?? 0) / campaign.clean,
  };
}

function tally(counts: Map<string, number>, names: Iterable<string>): void {
  for (const name of new Set(names)) counts.set(name, (counts.get(name) ?? 0) + 1);
}
