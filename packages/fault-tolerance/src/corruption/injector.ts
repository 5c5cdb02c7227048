/**
 * When corruption strikes: the engine asks at every place where a defect could show, and is given a
 * corruption to do, or nothing. The injector decides and touches no tensor.
 */
import { TriremeError, type Rng, createRng } from "@trireme/core";
import type { Persistence } from "../models/source.ts";
import type { FloatFormat } from "./bits.ts";
import { type Corruption, type CorruptionModel, drawCorruption } from "./corruption.ts";

/** Tensors that a defect shows in. */
export type CorruptionTarget =
  | "gemm-output"
  | "gradient"
  | "weight"
  | "optimizer-state"
  | "activation"
  | "collective-payload";

/** Expected corruptions for each hour a device works, or for each FLOP it does. */
export type CorruptionRate =
  | { readonly per: "device-hour"; readonly value: number }
  | { readonly per: "flop"; readonly value: number };

export interface InjectorOptions {
  readonly seed: number;
  readonly targets: readonly CorruptionTarget[];
  readonly model: CorruptionModel;
  readonly rate: CorruptionRate;
  /**
   * transient: every strike is on its own. intermittent: after the first strike the device strikes at
   * a tenth of its later visits. permanent: at all of them. A device recovers by `replace` only.
   */
  readonly persistence: Persistence;
  /** The devices that can have the defect; all by default. */
  readonly devices?: readonly number[];
}

/** One visit of a device to one target. */
export interface CorruptionVisit {
  readonly device: number;
  readonly target: CorruptionTarget;
  /** Values of the tensor, and their format. */
  readonly size: number;
  readonly format: FloatFormat;
  /** Work since the last visit: seconds or FLOP, as the rate counts. */
  readonly work: number;
}

/** Share of later visits that an intermittent defect strikes at. */
const intermittent = 0.1;

export class CorruptionInjector {
  readonly #options: InjectorOptions;
  readonly #targets: ReadonlySet<CorruptionTarget>;
  readonly #devices: ReadonlySet<number> | undefined;
  readonly #rngs = new Map<number, Rng>();
  readonly #defective = new Set<number>();

  /** @throws TriremeError "CORRUPTION" on a rate that is not 0 or more. */
  constructor(options: InjectorOptions) {
    if (!(options.rate.value >= 0 && options.rate.value < Infinity)) {
      throw new TriremeError(
        "CORRUPTION",
        `${options.rate.value} corruptions per ${options.rate.per}: use 0 or more`,
      );
    }
    this.#options = options;
    this.#targets = new Set(options.targets);
    this.#devices = options.devices && new Set(options.devices);
  }

  /** The corruption to do at this visit. Each device has a stream of its own, whatever the others do. */
  visit(visit: CorruptionVisit): Corruption | undefined {
    const { device, target, size, format, work } = visit;
    const { model, persistence } = this.#options;
    if (!this.#targets.has(target) || this.#devices?.has(device) === false) return undefined;
    if (!(work >= 0)) {
      throw new TriremeError("CORRUPTION", `work = ${work} of device ${device}: use 0 or more`);
    }
    let rng = this.#rngs.get(device);
    if (rng === undefined) {
      rng = createRng(this.#options.seed).fork(device);
      this.#rngs.set(device, rng);
    }
    const known = this.#defective.has(device);
    const again = known ? (persistence === "permanent" ? 1 : intermittent) : 0;
    if (rng.float() >= Math.max(again, this.#chance(work))) return undefined;
    if (persistence !== "transient") this.#defective.add(device);
    return drawCorruption(model, size, format, rng);
  }

  /** Chance of at least one strike in the work, of a Poisson stream. */
  #chance(work: number): number {
    const { per, value } = this.#options.rate;
    return -Math.expm1(-value * (per === "device-hour" ? work / 3600 : work));
  }

  /** The device was replaced by a good one. */
  replace(device: number): void {
    this.#defective.delete(device);
  }
}
