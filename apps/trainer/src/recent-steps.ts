/** The last steps of a run with their timelines: enough for a trace and a typical step, and no more. */
import type { Seconds } from "@trireme/core";
import type { StepEvent } from "@trireme/runtime";

const most = 32;

export class RecentSteps {
  readonly #steps: StepEvent[] = [];

  /** Adds a step; the oldest leaves when there are too many. */
  add(step: StepEvent): void {
    this.#steps.push(step);
    if (this.#steps.length > most) this.#steps.shift();
  }

  /** The last few, oldest first. */
  last(count: number): readonly StepEvent[] {
    return this.#steps.slice(-count);
  }

  /** The step whose time is nearest to `seconds`; there must be one. */
  nearest(seconds: Seconds): StepEvent {
    const gap = (step: StepEvent): Seconds => Math.abs(step.seconds - seconds);
    return this.#steps.reduce((best, step) => (gap(step) < gap(best) ? step : best));
  }
}
