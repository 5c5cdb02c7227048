/** Plans and states of the steps around those that are being read. */
import { TriremeError } from "@trireme/core";
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import type { PlannerState } from "../../planning/planner.ts";

/** Steps that are kept behind the newest. */
const keptSteps = 64;

/** What a host remembers; the oldest goes first. */
export class HostHistory {
  readonly #states = new Map<number, PlannerState>();
  readonly #plans = new Map<number, LoadingPlan>();

  /** Keeps the state before a step. */
  addState(state: PlannerState): void {
    this.#states.set(state.step, state);
  }

  /** Keeps the plan of a step, and forgets those that are too old for anyone; `ahead` are made ahead. */
  addPlan(plan: LoadingPlan, ahead: number): void {
    this.#plans.set(plan.step, plan);
    this.#plans.delete(plan.step - ahead - keptSteps);
    this.#states.delete(plan.step - ahead - keptSteps);
  }

  /** Forgets what comes at or after a step, as it will be planned anew; the state before it stays. */
  rewind(step: number): void {
    for (const later of this.#plans.keys()) if (later >= step) this.#plans.delete(later);
    for (const later of this.#states.keys()) if (later > step) this.#states.delete(later);
  }

  /** Whether the state before a step is kept. */
  has(step: number): boolean {
    return this.#states.has(step);
  }

  state(step: number): PlannerState {
    return kept(this.#states, step);
  }

  plan(step: number): LoadingPlan {
    return kept(this.#plans, step);
  }

  /** The state before the oldest step that is kept. */
  oldest(): PlannerState | undefined {
    return this.#states.values().next().value;
  }
}

function kept<T>(map: ReadonlyMap<number, T>, step: number): T {
  const found = map.get(step);
  if (found !== undefined) return found;
  const steps = [...map.keys()];
  throw new TriremeError(
    "HOST_LOADER",
    `step ${step} is not kept; kept are ${steps[0] ?? "none"} to ${steps.at(-1) ?? "none"}`,
  );
}
