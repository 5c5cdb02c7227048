import { type Rng, createRng } from "@trireme/core";
import {
  type TrialFault,
  type TrialResult,
  OutlierWatch,
  bitRange,
  detectorScore,
  drawBit,
  firstNonFinite,
  instructionVulnerability,
  modelVulnerability,
  replayDifference,
  runCampaign,
} from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";
import { normals } from "./matmul.ts";
import { B, I, O, type Hook, type Step, step, weights } from "./mlp.ts";

const word = new Float32Array(1);
const bits = new Uint32Array(word.buffer);
const flipped = (value: number, bit: number): number => {
  word[0] = value;
  bits[0]! ^= 2 ** bit;
  return word[0];
};
const through: Hook = (_, value) => value;

/** Flips one bit of the result of one dynamic instruction. */
function striking({ instruction, occurrence }: TrialFault, bit: number): Hook {
  let seen = 0;
  return (kind, value) =>
    kind === instruction && seen++ === occurrence ? flipped(value, bit) : value;
}

describe("a campaign", () => {
  it("estimates the vulnerability that trying every bit of every instruction gives", () => {
    // A 3 x 3 product: 27 multiply-adds of 32 bits. Bad is an error of over 10^-3 of the largest value.
    const rng = createRng(2);
    const [a, b] = [normals(9, rng), normals(9, rng)];
    const product = (hook: Hook): Float32Array => {
      const c = new Float32Array(9);
      for (let i = 0; i < 3; i++) {
        for (let j = 0; j < 3; j++) {
          let sum = 0;
          for (let l = 0; l < 3; l++) {
            sum = hook("fma", Math.fround(sum + a[3 * i + l]! * b[3 * l + j]!));
          }
          c[3 * i + j] = sum;
        }
      }
      return c;
    };
    const right = product(through);
    const largest = right.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const bad = (c: Float32Array): boolean =>
      c.some((x, i) => !(Math.abs(x - right[i]!) <= 1e-3 * largest));
    let count = 0;
    for (let occurrence = 0; occurrence < 27; occurrence++) {
      for (let bit = 0; bit < 32; bit++) {
        const fault = { instruction: "fma", occurrence, bits: "sign" } as const;
        if (bad(product(striking(fault, bit)))) count++;
      }
    }
    const exact = count / (27 * 32);
    const campaign = runCampaign({
      instructions: { fma: 27 },
      trials: 400,
      clean: 10,
      seed: 1,
      run: (fault, stream) => {
        const hook = fault ? striking(fault, drawBit("float32", fault.bits, stream)) : through;
        return { outcome: bad(product(hook)) ? "corrupt" : "masked", detectors: [] };
      },
    });
    // Four standard errors of a stratified mean of 4 × 400 trials: below 4 · 0.5 / √1600 = 0.05.
    expect(Math.abs(instructionVulnerability(campaign, "fma") - exact)).toBeLessThan(0.05);
    expect(exact).toBeGreaterThan(0.3);
    expect(exact).toBeLessThan(0.7);
  });

  it("weighs instructions by their share of all, and bit classes by their widths", () => {
    const campaign = runCampaign({
      instructions: { weak: 30, strong: 70 },
      trials: 10,
      clean: 4,
      seed: 0,
      run: (fault) => ({
        outcome: fault?.instruction === "weak" && fault.bits === "exponent" ? "corrupt" : "masked",
        detectors: fault ? ["always"] : [],
      }),
    });
    expect(instructionVulnerability(campaign, "weak")).toBe(8 / 32);
    expect(instructionVulnerability(campaign, "strong")).toBe(0);
    expect(modelVulnerability(campaign)).toBeCloseTo(0.3 * 0.25, 12);
    expect(detectorScore(campaign, "always")).toEqual({
      recall: {
        sign: undefined,
        exponent: 1,
        "high-mantissa": undefined,
        "low-mantissa": undefined,
      },
      falsePositives: 0,
    });
    expect(() => instructionVulnerability(campaign, "none")).toThrow('no instruction "none"');
    const run = (): TrialResult => ({ outcome: "masked", detectors: [] });
    expect(() =>
      runCampaign({ instructions: { a: 0 }, trials: 1, clean: 0, seed: 0, run }),
    ).toThrow("a = 0");
    expect(() => runCampaign({ instructions: {}, trials: 1, clean: 0, seed: 0, run })).toThrow(
      "0 kinds of instruction",
    );
  });
});

describe("a campaign on a training step of an MLP", () => {
  const start = weights(createRng(1));
  const batch = (rng: Rng): [Float32Array, number[]] => [
    normals(B * I, rng),
    Array.from({ length: B }, () => rng.integer(O)),
  ];
  const counts: Record<string, number> = {};
  step(start, ...batch(createRng(2)), (kind, value) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    return value;
  });
  const norm = (g: Float32Array): number => Math.hypot(...g);
  const watch = new OutlierWatch({ window: 256, k: 6 });
  const warmUp = createRng(3);
  for (let i = 0; i < 256; i++) {
    watch.observe(norm(step(start, ...batch(warmUp), through).gradient));
  }
  const { threshold } = watch;

  /** A step counts as masked when no weight is off by more than a thousandth of the largest update. */
  const outcomeOf = (got: Step, right: Step): TrialResult["outcome"] => {
    if (firstNonFinite(got.updated) >= 0 || !Number.isFinite(got.loss)) return "detected";
    let [error, update] = [0, 0];
    for (const [i, w] of got.updated.entries()) {
      error = Math.max(error, Math.abs(w - right.updated[i]!));
      update = Math.max(update, Math.abs(0.1 * right.gradient[i]!));
    }
    return error <= 1e-3 * update ? "masked" : "corrupt";
  };

  const campaign = runCampaign({
    instructions: counts,
    trials: 100,
    clean: 300,
    seed: 7,
    run: (fault, rng) => {
      const data = batch(rng);
      const right = step(start, ...data, through);
      const hook = fault ? striking(fault, drawBit("float32", fault.bits, rng)) : through;
      const got = step(start, ...data, hook);
      const detectors: string[] = [];
      if (firstNonFinite(got.updated) >= 0 || !Number.isFinite(got.loss)) detectors.push("finite");
      if (!(norm(got.gradient) <= threshold)) detectors.push("outlier");
      if (!got.checksums) detectors.push("checksum");
      if (replayDifference(got.updated, right.updated).count > 0) detectors.push("replay");
      return { outcome: outcomeOf(got, right), detectors };
    },
  });

  it("strikes instructions in the numbers that the step has", () => {
    // Products: X·W1, H·W2, Hᵀ·dY, dY·W2ᵀ, Xᵀ·dZ; and one multiply-add for each weight's update.
    const [h, o] = [12, 4];
    const products = B * I * h + B * h * o + h * B * o + B * o * h + I * B * h;
    expect(counts["fma"]).toBe(products + I * h + h + h * o + o);
    expect(counts["exp"]).toBe(B * O);
  });

  it("finds signs and exponents worst, and the low mantissa harmless", () => {
    const share = (kind: string): number => {
      const cells = campaign.cells.filter((each) => each.bits === kind);
      const bad = cells.reduce((sum, each) => sum + each.trials - each.outcomes.masked, 0);
      return bad / cells.reduce((sum, each) => sum + each.trials, 0);
    };
    // Measured: sign 0.84, exponent 0.80, high mantissa 0.35, low mantissa 0.
    expect(share("exponent")).toBeGreaterThan(share("high-mantissa"));
    expect(share("low-mantissa")).toBeLessThan(0.02);
    const [from, to] = bitRange("float32", "low-mantissa");
    expect(to - from).toBe(11);
  });

  it("gives vulnerability factors: the model's is the mean of its instructions' by share", () => {
    const factors = Object.keys(counts).map(
      (kind) => [kind, instructionVulnerability(campaign, kind)] as const,
    );
    // Measured: multiply-add 0.32, add 0.34, max 0.25, exp 0.45, divide 0.44; the model 0.32.
    const total = Object.values(counts).reduce((a, b) => a + b, 0);
    const mean = factors.reduce((sum, [kind, ivf]) => sum + (counts[kind]! / total) * ivf, 0);
    expect(modelVulnerability(campaign)).toBeCloseTo(mean, 12);
    for (const [, ivf] of factors) {
      expect(ivf).toBeGreaterThan(0);
      expect(ivf).toBeLessThan(1);
    }
  });

  it("scores the detectors: replay sees all, checksums products, the finite guard next to nothing", () => {
    const scores = Object.fromEntries(
      ["finite", "outlier", "checksum", "replay"].map((name) => [
        name,
        detectorScore(campaign, name),
      ]),
    );
    for (const each of ["finite", "checksum", "replay"]) {
      expect(scores[each]!.falsePositives).toBe(0);
    }
    // Six scaled deviations over 300 clean steps.
    expect(scores["outlier"]!.falsePositives).toBeLessThan(0.02);
    for (const kind of ["sign", "exponent", "high-mantissa"] as const) {
      expect(scores["replay"]!.recall[kind]).toBe(1);
    }
    // Measured over all instructions: 14 % of signs (a negative chance has no logarithm), 6 % of
    // exponents, none of the mantissa; the outlier watch 0, 13 % and 0; checksums 18, 22 and 12 %, for
    // they guard the products only.
    expect(scores["finite"]!.recall.exponent).toBeLessThan(0.2);
    expect(scores["finite"]!.recall["high-mantissa"]).toBe(0);
    expect(scores["outlier"]!.recall.exponent).toBeGreaterThan(0.05);
    const products = campaign.cells.find(
      (each) => each.instruction === "fma" && each.bits === "exponent",
    )!;
    const bad = products.trials - products.outcomes.masked;
    expect((products.caught.get("checksum") ?? 0) / bad).toBeGreaterThan(0.8);
  });
});
