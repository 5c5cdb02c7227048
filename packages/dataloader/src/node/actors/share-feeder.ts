/** One share of the steps on its way into the rings: waits for room, builds in order, clears away. */
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import { startActor } from "./actor.ts";
import type { ConstructMessage } from "./data-constructor.ts";
import type { CheckedHostOptions } from "./host-loader-options.ts";
import { type Parcel, dropParcel } from "./parcel.ts";
import type { Ring, RingRef } from "./ring.ts";
import { openRing, roomFor } from "./ring-waits.ts";
import { Supervised } from "./supervised.ts";

/** Feeds the rings of one share through its data constructor. */
export class ShareFeeder {
  readonly share: number;
  readonly supervised: Supervised;
  readonly #rings: readonly Ring[];
  readonly #rankDeadline: number;
  /** The build before: steps are built in order. */
  #last: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: CheckedHostOptions, share: number, rings: readonly (RingRef | undefined)[]) {
    const { actors, construct, deadline, attempts, rankDeadline } = options;
    this.share = share;
    this.#rankDeadline = rankDeadline;
    this.#rings = rings.flatMap((ref) => (ref === undefined ? [] : [openRing(ref)]));
    this.supervised = new Supervised({
      start: () =>
        startActor(actors, `data constructor ${share}`, {
          role: "constructor",
          share,
          rings,
          construct,
        }),
      shadow: false,
      deadline,
      attempts,
    });
  }

  /** Waits until a step has a free slot in every ring. */
  async room(step: number): Promise<void> {
    await Promise.all(this.#rings.map((ring) => roomFor(ring, step, this.#rankDeadline)));
  }

  /** Has a step built, after the one before. */
  build(plan: LoadingPlan, parcels: readonly Parcel[]): Promise<void> {
    // Lineage stays with the planner.
    const message: ConstructMessage = { plan: { ...plan, graphs: [], encoders: [] }, parcels };
    const what = `building step ${plan.step} of share ${this.share}`;
    const built = this.#last.then(() => this.supervised.ask(message, what));
    this.#last = built.then(
      () => undefined,
      () => undefined,
    );
    return built.then(() => undefined).finally(() => parcels.forEach(dropParcel));
  }

  close(status: "ended" | "failed"): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const ring of this.#rings) {
      ring.close(status);
      ring.release();
    }
    this.supervised.close();
  }
}
