/**
 * The process a controller runs in: it stores the record before it answers, and dies of a write that
 * another controller has forestalled. What it is told is kept, so that it can be told again.
 */
import { TriremeError, type Seconds } from "@trireme/core";

import type { RecoveryController } from "../recovery/controller.ts";
import type { ControllerOptions } from "../recovery/options.ts";
import type { Order, Report } from "../recovery/protocol.ts";
import { type ControllerRecord, decodeRecord, encodeRecord } from "../recovery/record.ts";
import type { Told } from "./stop-reasons.ts";
import type { Witness } from "./witness.ts";

/** What a controller can be, whole or broken on purpose. */
export type ControllerLike = Pick<
  RecoveryController,
  "record" | "next" | "report" | "tick" | "suspect" | "admit" | "update"
>;

export type ControllerFactory = (
  options: ControllerOptions,
  now: Seconds,
  record?: ControllerRecord,
) => ControllerLike;

/** Something a controller is told. */
export type Input =
  | { readonly kind: "start"; readonly record: string }
  | { readonly kind: "report"; readonly report: Report }
  | { readonly kind: "tick" }
  | { readonly kind: "suspect"; readonly hosts: readonly number[]; readonly reason: string }
  | { readonly kind: "admit"; readonly host: number }
  | { readonly kind: "update"; readonly version: number; readonly urgent: boolean };

/** An input with what came of it. */
export interface TraceEntry {
  /** Which controller process was told, counted from 0, and when by its clock. */
  readonly seat: number;
  readonly at: Seconds;
  readonly input: Input;
  readonly order?: Order;
  /** The record after it, where it changed. */
  readonly record?: string;
}

/** The one place where the record is kept. Only who knows its last revision may replace it. */
export class RecordStore {
  text: string;
  revision = 0;
  /** Times that somebody was about to write. */
  attempts = 0;

  constructor(record: ControllerRecord) {
    this.text = encodeRecord(record);
  }
}

export interface SeatInput {
  readonly seat: number;
  readonly factory: ControllerFactory;
  readonly options: ControllerOptions;
  readonly store: RecordStore;
  readonly witness: Witness;
  readonly trace: TraceEntry[];
  readonly now: Seconds;
  /** Its clock less true time. */
  readonly skew: Seconds;
  /** Whether the process dies at a write, told their count so far. */
  readonly dies: (write: number, when: "before" | "after") => boolean;
}

export class Seat {
  alive = true;
  /** Ticks in a row after which it asked to be woken at once. */
  idle = 0;
  readonly told: Told;
  readonly #input: SeatInput;
  readonly #controller: ControllerLike;
  #stored: ControllerRecord;
  #revision: number;

  constructor(input: SeatInput) {
    const { store, factory, options, now, skew, seat, trace } = input;
    this.#input = input;
    this.told = { since: now, heard: new Map(), entered: new Map(), faulty: new Set(), last: now };
    this.#controller = factory(options, now + skew, decodeRecord(store.text));
    this.#stored = this.#controller.record;
    this.#revision = store.revision;
    trace.push({ seat, at: now + skew, input: { kind: "start", record: store.text } });
  }

  /** When it has next something to do by itself, in true time. */
  get next(): Seconds {
    return this.#controller.next - this.#input.skew;
  }

  /** Tells the controller something; undefined where the process dies before it can answer. */
  tell(input: Input, now: Seconds): Order | undefined {
    const { seat, trace, skew, store, witness, dies } = this.#input;
    // A timer never fires before its time by the clock it was set on.
    const clock = input.kind === "tick" ? Math.max(now + skew, this.#controller.next) : now + skew;
    if (input.kind === "report") this.#hear(input.report, now);
    if (input.kind === "admit") this.told.faulty.delete(input.host);
    let order: Order | undefined;
    try {
      order = apply(this.#controller, input, clock);
    } catch (error) {
      // Another one leads: as it should, the process ends.
      if (!(error instanceof TriremeError) || error.code !== "STALE_RECORD") throw error;
      this.alive = false;
      return undefined;
    }
    const record = this.#controller.record;
    const answer = order === undefined ? {} : { order };
    if (record === this.#stored) {
      trace.push({ seat, at: clock, input, ...answer });
      return order;
    }
    const write = store.attempts++;
    if (dies(write, "before") || store.revision !== this.#revision) {
      this.alive = false;
      return undefined;
    }
    store.text = encodeRecord(record);
    this.#revision = ++store.revision;
    this.#stored = record;
    trace.push({ seat, at: clock, input, ...answer, record: store.text });
    witness.stored(record, now, this.told);
    if (!dies(write, "after")) return order;
    this.alive = false;
    return undefined;
  }

  #hear({ host, generation, fault }: Report, now: Seconds): void {
    if (fault === "host") this.told.faulty.add(host);
    this.told.heard.set(host, now);
    this.told.last = now;
    this.told.entered.set(host, Math.max(generation, this.told.entered.get(host) ?? 0));
  }
}

/** Tells a controller something. */
export function apply(controller: ControllerLike, input: Input, now: Seconds): Order | undefined {
  switch (input.kind) {
    case "start":
      return undefined;
    case "report":
      return controller.report(input.report, now);
    case "tick":
      controller.tick(now);
      return undefined;
    case "suspect":
      controller.suspect(input.hosts, input.reason, now);
      return undefined;
    case "admit":
      controller.admit(input.host, now);
      return undefined;
    case "update":
      controller.update(input.version, now, { urgent: input.urgent });
      return undefined;
  }
}
