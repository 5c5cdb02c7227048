/**
 * Watches loss and gradient norm for spikes, and says when to go back: a spike that does not recover is
 * answered with an earlier healthy checkpoint, and the batches since then are skipped (Acme, NSDI 2024;
 * PaLM, JMLR 2023, section 5.1). What counts as a spike is `@trireme/fault-tolerance`'s to say.
 */
import { TriremeError } from "@trireme/core";
import { metricAnomaly } from "@trireme/fault-tolerance";

/** What is a spike, and what is done about it. */
export interface LossGuardOptions {
  /** Healthy steps whose median a value is compared with; default 64. */
  readonly window?: number;
  /** Steps at the start of which nothing but NaN and infinity counts; default 16, at most `window`. */
  readonly settle?: number;
  /** Times the median that is a spike; default 5, ByteRobust's. */
  readonly factor?: number;
  /** Spikes in a row after which the run goes back; default 3. What is not finite goes back at once. */
  readonly patience?: number;
  /** Steps that the checkpoint must lie before the first spike; default 0. PaLM took about 100. */
  readonly before?: number;
  /** Times a run may go back before it fails; default 3. */
  readonly rollbacks?: number;
}

/** What the guard says of a step. */
export interface LossVerdict {
  readonly kind: "healthy" | "spike" | "go-back";
  /** What is wrong, on one line; "" of a healthy step. */
  readonly reason: string;
  /** For "go-back": the latest step after which a checkpoint is taken to be healthy. */
  readonly latest: number;
}

/** The guard of one run; its state is the recent past. */
export class LossGuard {
  readonly #options: Required<LossGuardOptions>;
  readonly #losses: number[] = [];
  readonly #norms: number[] = [];
  /** First step of the spikes in a row that the last step ended. */
  #first: number | undefined;
  #spikes = 0;
  #rollbacks = 0;

  /** @throws TriremeError "GUARD" for a number that makes no sense. */
  constructor(options: LossGuardOptions = {}) {
    const { window = 64, factor = 5, patience = 3, before = 0, rollbacks = 3 } = options;
    const { settle = Math.min(16, window) } = options;
    const counts = [
      ["window", window, 1],
      ["settle", settle, 1],
      ["patience", patience, 1],
      ["before", before, 0],
      ["rollbacks", rollbacks, 0],
    ] as const;
    for (const [name, value, least] of counts) {
      if (!Number.isSafeInteger(value) || value < least)
        throw new TriremeError("GUARD", `${name} ${value}: it is an integer of at least ${least}`);
    }
    if (!(factor > 1))
      throw new TriremeError("GUARD", `factor ${factor}: it is above 1; 5 is usual`);
    if (settle > window)
      throw new TriremeError("GUARD", `settle ${settle} is above window ${window}; use ${window}`);
    this.#options = { window, settle, factor, patience, before, rollbacks };
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
      this.#first = undefined;
      this.#spikes = 0;
      return { kind: "healthy", reason: "", latest: step };
    }
    this.#first ??= step;
    this.#spikes++;
    const { patience, before } = this.#options;
    const finite = Number.isFinite(loss) && Number.isFinite(gradientNorm);
    const kind = finite && this.#spikes < patience ? "spike" : "go-back";
    return { kind, reason: reasons.join(", "), latest: this.#first - before };
  }

  /**
   * Told that the run goes back.
   * @throws TriremeError "LOSS" where it has gone back as often as it may.
   */
  wentBack(reason: string): void {
    this.#first = undefined;
    this.#spikes = 0;
    if (++this.#rollbacks <= this.#options.rollbacks) return;
    throw new TriremeError(
      "LOSS",
      `${reason}, after going back ${this.#rollbacks - 1} times: training diverges; lower optimizer.learningRate`,
    );
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
