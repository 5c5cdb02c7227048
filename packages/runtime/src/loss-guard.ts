/**
 * Watches loss and gradient norm for spikes, and says where to go back to. What is a spike, and what is
 * done about one that does not pass (an earlier healthy checkpoint, the batches around it skipped), are
 * `@trireme/fault-tolerance`'s to say; this keeps the recent past that they are asked about.
 */
import { TriremeError } from "@trireme/core";
import {
  type Spike,
  type SpikePolicy,
  defaultSpikePolicy,
  metricAnomaly,
  planRollback,
} from "@trireme/fault-tolerance";
import type { Position } from "./loop-state.ts";

/** What is a spike, and what is done about it. */
export interface LossGuardOptions extends Partial<SpikePolicy> {
  /** Healthy steps whose median a value is compared with; default 64. */
  readonly window?: number;
  /** Steps at the start of which nothing but NaN and infinity counts; default 16, at most `window`. */
  readonly settle?: number;
  /** Times the median that is a spike; default 5, ByteRobust's. */
  readonly factor?: number;
  /** Spikes in a row after which the run goes back; default 3. What is not finite goes back at once. */
  readonly patience?: number;
}

/** What the guard says of a step. */
export interface LossVerdict {
  readonly kind: "healthy" | "spike" | "go-back";
  /** What is wrong, on one line; "" of a healthy step. */
  readonly reason: string;
}

/** Where a run goes on after a spike. */
export interface GoBack {
  /** Steps done at the checkpoint to restore, or at an older one where that is damaged. */
  readonly latest: number;
  /** Batches skipped from then on, were it restored at `step`. */
  readonly skippedAt: (step: number) => number;
}

/** The guard of one run; its state is the recent past. */
export class LossGuard {
  readonly #options: Required<LossGuardOptions>;
  readonly #losses: number[] = [];
  readonly #norms: number[] = [];
  /** Steps of the spikes in a row that the last step ended. */
  #spikes: number[] = [];
  /** The spike that was last recovered from. */
  #last: Spike | undefined;

  /** @throws TriremeError "GUARD" for a number that makes no sense. */
  constructor(options: LossGuardOptions = {}) {
    const { window = 64, factor = 5, patience = 3 } = options;
    const { settle = Math.min(16, window) } = options;
    this.#options = { ...defaultSpikePolicy, ...options, window, settle, factor, patience };
    const { reattempts, back, margin, limit } = this.#options;
    const counts = [
      ["window", window, 1],
      ["settle", settle, 1],
      ["patience", patience, 1],
      ["reattempts", reattempts, 0],
      ["back", back, 0],
      // Without a margin a run whose every batch is bad would go back for ever.
      ["margin", margin, 1],
      ["limit", limit, 0],
    ] as const;
    for (const [name, value, least] of counts) {
      if (!Number.isSafeInteger(value) || value < least)
        throw new TriremeError("GUARD", `${name} ${value}: it is an integer of at least ${least}`);
    }
    if (!(factor > 1))
      throw new TriremeError("GUARD", `factor ${factor}: it is above 1; 5 is usual`);
    if (settle > window)
      throw new TriremeError("GUARD", `settle ${settle} is above window ${window}; use ${window}`);
  }

  /** Looks at step `step`, which counts from 0. */
  see(step: number, loss: number, gradientNorm: number): LossVerdict {
    const reasons = [
      this.#anomaly("loss", this.#losses, loss),
      this.#anomaly("gradient norm", this.#norms, gradientNorm),
    ].filter((reason) => reason !== undefined);
    if (reasons.length === 0) {
      this.#remember(this.#losses, loss);
      this.#remember(this.#norms, gradientNorm);
      this.#spikes = [];
      return { kind: "healthy", reason: "" };
    }
    this.#spikes.push(step);
    const finite = Number.isFinite(loss) && Number.isFinite(gradientNorm);
    const passing = finite && this.#spikes.length < this.#options.patience;
    return { kind: passing ? "spike" : "go-back", reason: reasons.join(", ") };
  }

  /**
   * Where to go back to from the step that `see` said so of. `saves`: steps done at each checkpoint.
   * @throws TriremeError "LOSS" with `reason` where there is nothing to go back to, or the run has gone
   * back often enough.
   */
  goBack(saves: readonly number[], { step, skipped }: Position, reason: string): GoBack {
    const [first = step] = this.#spikes;
    this.#spikes = [];
    const { reattempts, back, margin, limit } = this.#options;
    // There a save has the number of the last step in it, here of the steps done.
    const plan = planRollback({
      step: first,
      skip: skipped,
      saves: saves.map((save) => save - 1).sort((a, b) => a - b),
      last: this.#last,
      // All that the spike lasted is skipped, and the margin after it.
      policy: { reattempts, back, margin: margin + step - first, limit },
    });
    if (!plan.ok) {
      const advice =
        plan.stop === "diverged"
          ? "training diverges; lower optimizer.learningRate or lengthen optimizer.warmup"
          : `no checkpoint of step ${first} or before is there to go back to`;
      throw new TriremeError("LOSS", `${reason}: ${advice}`);
    }
    this.#last = plan.spike;
    const latest = plan.to + 1;
    const again = plan.skip === skipped;
    return { latest, skippedAt: (at) => (again ? skipped : plan.skip + latest - at) };
  }

  #anomaly(what: string, recent: readonly number[], value: number): string | undefined {
    const { factor, settle } = this.#options;
    const known = recent.length < settle ? [] : recent;
    switch (metricAnomaly(known, value, factor)) {
      case "none":
        return undefined;
      case "not-finite":
        return `${what} ${value}`;
      case "spike":
        return `${what} ${value} is ${factor} times the recent median or more`;
    }
  }

  #remember(recent: number[], value: number): void {
    recent.push(value);
    if (recent.length > this.#options.window) recent.shift();
  }
}
