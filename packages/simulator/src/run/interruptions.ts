/** Why generations ended, and what each end cost. */
import type { Seconds } from "@trireme/core";
import type { ControllerRecord } from "@trireme/fault-tolerance";
import type { GenerationSpan, Incident, RunDecision } from "@trireme/fault-tolerance/simulation";
import type { Outage } from "./outages.ts";

export interface Interruption {
  /** When training stopped: at the fault, or at the decision to halt. */
  readonly at: Seconds;
  /** The fault's cause, or "update", "loss spike", "regrow". */
  readonly cause: string;
  /** From the fault to the next generation's first step, or as far as that came. */
  readonly down: Seconds;
  /** Training that was not kept. */
  readonly lost: Seconds;
  readonly lostSteps: number;
  /** Evicted hosts, good ones that were named with them included. */
  readonly evicted: number;
}

/** Follows the controller's decisions, and says of each generation's end why it came. */
export class Causes {
  readonly #incidents: ReadonlyMap<Seconds, Incident>;
  readonly #ends = new Map<Seconds, { readonly cause: string; evicted: number }>();
  #last: ControllerRecord | undefined;
  #end: { readonly cause: string; evicted: number } | undefined;

  constructor(incidents: readonly Incident[], first?: ControllerRecord) {
    this.#incidents = new Map(incidents.map((incident) => [incident.time, incident]));
    this.#last = first;
  }

  /** To be told of every decision, in order. */
  decided({ at, record }: RunDecision): void {
    const last = this.#last;
    this.#last = record;
    const evicted = record.evicted.size - (last?.evicted.size ?? 0);
    if (record.phase === "training") {
      this.#end = undefined;
      return;
    }
    if (this.#end !== undefined) this.#end.evicted += Math.max(0, evicted);
    else {
      this.#end = { cause: causeOf(record, last), evicted: Math.max(0, evicted) };
      this.#ends.set(at, this.#end);
    }
  }

  /** Of a generation that was stopped by an incident at one time and halted at another. */
  of({ stopped, ended }: GenerationSpan): { readonly cause: string; readonly evicted: number } {
    const incident = stopped < ended ? this.#incidents.get(stopped) : undefined;
    const end = this.#ends.get(ended);
    const cause = incident?.cause ?? incident?.symptom ?? end?.cause ?? "unknown";
    return { cause, evicted: end?.evicted ?? 0 };
  }
}

function causeOf(record: ControllerRecord, last: ControllerRecord | undefined): string {
  const evicted = [...record.evicted].findLast(([host]) => last?.evicted.has(host) !== true);
  if (evicted !== undefined) return evicted[1];
  if (record.spike !== last?.spike) return "loss spike";
  if (record.attempts > (last?.attempts ?? 0)) return "software";
  return record.pending === undefined ? "regrow" : "update";
}

/** Every end of a generation before the run's. */
export function interruptionsOf(
  spans: readonly GenerationSpan[],
  outages: readonly Outage[],
  causes: Causes,
  end: Seconds,
): readonly Interruption[] {
  const down = new Float64Array(spans.length);
  for (const { what, span, start, end: until } of outages) {
    const after = what === "detect" || what === "halt" || what === "wait";
    const by = after ? span : span - 1;
    if (by >= 0) down[by]! += until - start;
  }
  return spans.flatMap((span, i) => {
    // A generation that is cut by the horizon has not ended, but a fault may have stopped it.
    if (span.stopped >= end) return [];
    const { cause, evicted } = causes.of(span);
    const lost = lostTime(span);
    const lostSteps = span.done - Math.max(span.kept, span.step - 1);
    return [{ at: span.stopped, cause, down: down[i]!, lost, lostSteps, evicted }];
  });
}

/** Training of a generation that was not kept. */
export function lostTime(span: GenerationSpan): Seconds {
  const trained = Math.max(0, span.stopped - span.began);
  return Math.max(0, trained - span.productive - span.saving - standstill(span));
}

/** How long a generation stood still with nothing wrong: links that were down for a moment. */
export function standstill({ stretches, stopped }: GenerationSpan): Seconds {
  let time = 0;
  for (const [i, { from, stepTime }] of stretches.entries()) {
    if (stepTime < Infinity) continue;
    time += Math.max(0, Math.min(stopped, stretches[i + 1]?.from ?? Infinity) - from);
  }
  return time;
}
