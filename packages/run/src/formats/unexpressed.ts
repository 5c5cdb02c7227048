/**
 * What a format has no setting for at all: whatever of a run's model, plan and optimizer is not the default is listed.
 */
import {
  type Model,
  type ModelOptions,
  type Plan,
  defineModel,
  definePlan,
} from "@trireme/workload";
import { fingerprint } from "../fingerprint.ts";
import type { ResolvedRun } from "../resolved.ts";
import type { Unsupported } from "./interchange.ts";

/** What a format can say. */
export interface Reach {
  /** Fields of a model that it writes, or lists by itself. */
  readonly model: readonly string[];
  /** The form of all its models, where that is not GPT's. */
  readonly form: Partial<ModelOptions>;
  readonly plan: readonly (keyof Plan)[];
  /** Whether it writes what is stated of routers, or lists it by itself; left out, no. */
  readonly router?: boolean;
  /** Why the rest cannot be said. */
  readonly reason: string;
}

/** Fields beyond a format's reach that differ from what they are when nothing is said. */
export function unexpressed(run: ResolvedRun, reach: Reach): readonly Unsupported[] {
  const { reason } = reach;
  const { kind } = run.optimizer;
  return [
    // Some have a LAMB of their own, with bounds on how far a tensor moves.
    ...(kind === "adamw"
      ? []
      : [
          { option: "optimizer.kind", value: kind, reason: "only adamw moves weights alike there" },
        ]),
    ...differing(run.model, modelDefaults(run.model, reach), [
      ...reach.model,
      "name",
      "source",
    ]).map(([key, value]) => ({ option: `model.${key}`, value, reason })),
    ...(reach.router === true ? [] : Object.entries(run.router ?? {})).map(([key, value]) => ({
      option: `router.${key}`,
      value,
      reason,
    })),
    ...differing(run.plan, planDefaults(run), [...reach.plan, ...sizes]).map(([key, value]) => ({
      option: `plan.${key}`,
      value,
      reason,
    })),
  ];
}

/** What every format writes of a batch, or leaves to the launcher. */
const sizes: readonly (keyof Plan)[] = ["dp", "microbatch", "globalBatch"];

function differing(
  stated: object,
  defaults: object,
  reached: readonly string[],
): readonly (readonly [string, unknown])[] {
  return Object.entries(stated).filter(
    ([key, value]) =>
      !reached.includes(key) &&
      fingerprint({ value }) !== fingerprint({ value: Reflect.get(defaults, key) }),
  );
}

function modelDefaults(m: Model, { form, model }: Reach): Model {
  const { layers, hidden, heads, vocab, headDim } = m;
  // Other fields' defaults follow from these.
  const leading = (["norm", "bias", "block"] as const)
    .filter((key) => model.includes(key))
    .map((key) => [key, m[key]]);
  return defineModel({
    layers,
    hidden,
    heads,
    vocab,
    headDim,
    ...form,
    ...Object.fromEntries(leading),
  });
}

function planDefaults({ model, plan }: ResolvedRun): Plan {
  const one = defineModel({ layers: 1, hidden: 1, heads: 1, vocab: 1 });
  return {
    ...definePlan(one, { globalBatch: 1 }),
    etp: model.experts === undefined ? 1 : plan.tp,
    sequence: model.context,
    schedule: plan.vpp > 1 ? "interleaved" : "1f1b",
  };
}
