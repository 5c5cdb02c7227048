/**
 * An actor that builds one share of each step: packs the samples that sources sent, cuts them for
 * context parallelism, and puts each slice into the ring that its ranks read.
 */
import { TriremeError } from "@trireme/core";
import { encodeFrame, frameWords } from "../../construct/batch-frame.ts";
import {
  type ConstructOptions,
  constructShare,
  sliceMicrobatch,
} from "../../construct/microbatch.ts";
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import type { Handler } from "./handler.ts";
import { type Parcel, unpackParcel } from "./parcel.ts";
import type { Ring, RingRef } from "./ring.ts";
import { openRing } from "./ring-waits.ts";

/** What a data constructor is started with. */
export interface ConstructorRole {
  readonly role: "constructor";
  readonly share: number;
  /** A ring for each slice that this host's ranks need; undefined for the others. */
  readonly rings: readonly (RingRef | undefined)[];
  readonly construct: ConstructOptions;
}

/** What it is asked: to build a step. The steps come in order, each perhaps more than once. */
export interface ConstructMessage {
  readonly plan: LoadingPlan;
  readonly parcels: readonly Parcel[];
}

/** Opens the rings of a role. */
export async function openConstructor(role: ConstructorRole): Promise<Handler> {
  const rings = role.rings.map((ref) => (ref === undefined ? undefined : openRing(ref)));
  const awaits = (ring: Ring, step: number): boolean => {
    const due = ring.shape.firstStep + ring.written();
    if (step > due) {
      throw new TriremeError(
        "CONSTRUCT",
        `${ring.shape.name} was given step ${step}, but step ${due} is next`,
      );
    }
    return step === due;
  };
  return (message) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the host sends nothing else
    const { plan, parcels } = message as ConstructMessage;
    // A constructor that died after some slices left them written; they are not written twice.
    if (!rings.some((ring) => ring !== undefined && awaits(ring, plan.step))) return;
    const samples = new Map(parcels.flatMap(unpackParcel));
    const read = (sample: number): Int32Array => {
      const tokens = samples.get(sample);
      if (tokens === undefined) {
        throw new TriremeError(
          "CONSTRUCT",
          `step ${plan.step}: sample ${sample} of share ${role.share} is in no parcel`,
        );
      }
      return tokens;
    };
    const whole = constructShare(plan, role.share, read, role.construct);
    rings.forEach((ring, slice) => {
      if (ring === undefined || !awaits(ring, plan.step)) return;
      const microbatches = whole.microbatches.map((microbatch) =>
        sliceMicrobatch(microbatch, rings.length, slice),
      );
      const batch = { ...whole, microbatches };
      const words = frameWords(batch);
      if (words > ring.shape.slotWords) {
        throw new TriremeError(
          "FRAME",
          `step ${plan.step} of ${ring.shape.name} takes ${4 * words} bytes, a slot has ${4 * ring.shape.slotWords}; use slotBytes of at least ${4 * words}`,
        );
      }
      ring.write(words, (frame) => encodeFrame(batch, frame));
    });
  };
}
