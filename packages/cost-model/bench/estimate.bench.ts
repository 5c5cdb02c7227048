import { estimate, estimator } from "@trireme/cost-model";
import { type Cluster, defineCluster } from "@trireme/topology";
import { type Model, type Plan, type PlanOptions, definePlan, model } from "@trireme/workload";

/** Models and the devices they are laid out on. */
const searches = [
  ["llama3-8b", 64],
  ["llama3-70b", 256],
  ["gpt3-175b", 1024],
  ["gpt-530b", 2240],
  ["llama3-405b", 2048],
] as const;

/** Different plans of each model, all of which fit. */
const perModel = 10_000;

interface Search {
  readonly model: Model;
  readonly cluster: Cluster;
  readonly plans: readonly Plan[];
}

/** Options of a plan, each with its values. */
const choices: Readonly<Partial<Record<keyof Plan, readonly unknown[]>>> = {
  microbatch: [1, 2, 4],
  vpp: [1, 2, 3],
  recompute: ["none", "selective", "full"],
  zero: [0, 1, 2, 3],
  sequenceParallel: [false, true],
  scatterGather: [false, true],
  overlapDataParallel: [false, true],
  overlapTensorParallel: [false, true],
  overlapPointToPoint: [false, true],
  gradientPrecision: ["fp32", "bf16"],
};

const sizes = Object.values(choices).map((values) => values.length);
const combinations = sizes.reduce((a, b) => a * b, 1);

/** Combination number `i` of the choices. */
function combination(i: number): Partial<Plan> {
  let rest = i;
  return Object.fromEntries(
    Object.entries(choices).map(([name, values]) => {
      const value = values[rest % values.length];
      rest = Math.floor(rest / values.length);
      return [name, value];
    }),
  );
}

/** Plans that fit, spread over all layouts and choices. */
function search(name: string, devices: number): Search {
  const m = model(name);
  const cluster = defineCluster({ host: "dgx-h100", hosts: devices / 8 });
  const feasible = estimator({ model: m, cluster });
  const layouts = [1, 2, 4, 8].flatMap((tp) =>
    Array.from({ length: 64 }, (_, i) => i + 1)
      .filter((pp) => devices % (tp * pp) === 0)
      .map((pp) => ({ tp, pp, dp: devices / (tp * pp), globalBatch: 4 * devices })),
  );
  const plans: Plan[] = [];
  // A prime stride visits every combination once, in an order that mixes all choices.
  for (let i = 0; i < combinations && plans.length < perModel; i++) {
    const chosen = combination((i * 7919) % combinations);
    for (const layout of layouts) {
      const plan = legal(m, { ...layout, ...chosen });
      if (plan !== undefined && feasible(plan).ok && plans.length < perModel) plans.push(plan);
    }
  }
  if (plans.length < perModel) throw new Error(`${name}: only ${plans.length} plans fit`);
  return { model: m, cluster, plans };
}

function legal(m: Model, o: PlanOptions): Plan | undefined {
  if ((o.pp === 1 && o.vpp !== 1) || m.layers < o.pp! * o.vpp!) return undefined;
  try {
    return definePlan(m, o);
  } catch {
    return undefined;
  }
}

let list: readonly Search[] = [];

const gpt = model("gpt3-175b");
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 128 });
const alone = [1, 2, 3, 4, 6, 8, 12, 16].map((microbatchesPerRank) =>
  definePlan(gpt, {
    tp: 8,
    pp: 8,
    dp: 16,
    globalBatch: 128 * microbatchesPerRank,
    sequenceParallel: true,
    zero: 1,
  }),
);

export const benchmarks = [
  {
    id: "cost-model/estimates",
    what: "full estimates in a second over 50,000 different plans of five models that fit, nothing known at the start",
    unit: "estimates/s",
    better: "higher",
    target: 20_000,
    amount: searches.length * perModel,
    repeats: 3,
    before: (): void => {
      list = searches.map(([name, devices]) => search(name, devices));
    },
    time: (): void => {
      for (const s of list) {
        const price = estimator(s);
        for (const plan of s.plans) price(plan);
      }
    },
    peer: {
      name: "Calculon (Python)",
      value: 450,
      source: "819 measured steps in one process, by tooling/validation/src/calculon/main.ts",
    },
  },
  {
    id: "cost-model/estimates-alone",
    what: "full estimates of GPT-3 175B on 1,024 A100 in a second, nothing kept between them",
    unit: "estimates/s",
    better: "higher",
    target: null,
    amount: alone.length,
    time: (): void => {
      for (const plan of alone) estimate({ model: gpt, plan, cluster });
    },
  },
] as const;
