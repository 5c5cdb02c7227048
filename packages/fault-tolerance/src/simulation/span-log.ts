/** The generations of a run as they end, and what of their training came to count. */
import type { Seconds } from "@trireme/core";

import type { Progress } from "./progress.ts";
import type { GenerationSpan } from "./run-input.ts";

export class SpanLog {
  readonly #spans: GenerationSpan[] = [];
  readonly #played: Progress[] = [];

  get spans(): readonly GenerationSpan[] {
    return this.#spans;
  }

  /** Time of the steps that have stayed committed. */
  get productive(): Seconds {
    return this.#spans.reduce((sum, each) => sum + each.productive, 0);
  }

  /** A generation is over, with so many steps committed. */
  add(progress: Progress, committed: number, now: Seconds): void {
    const { generation, members, ordered, step } = progress.input;
    // A rollback takes back steps of generations before this one too.
    for (let i = this.#spans.length - 1; i >= 0 && this.#spans[i]!.kept > committed; i--) {
      const time = this.#played[i]!.trained(committed);
      this.#spans[i] = { ...this.#spans[i]!, kept: committed, productive: time };
    }
    this.#played.push(progress);
    const { stretches } = progress;
    const began = Math.min(progress.began, now);
    const stopped = Math.min(progress.frozen, now);
    const time = { generation, members, ordered, began, stopped, ended: now };
    const steps = { step, done: progress.done(now), committed, kept: committed };
    const productive = progress.trained(committed);
    this.#spans.push({ ...time, ...steps, productive, saving: progress.blocked(now), stretches });
  }
}
