/**
 * What plans of one model on one cluster share: kernel times by shape, collective times by group and size,
 * stages by number. It only remembers, so that a plan costs the same whatever was priced before.
 */
import { type Cluster, hostOf } from "@trireme/topology";
import { type Model, type Plan, type Stage, countForms, layerForms } from "@trireme/workload";
import { type BlockPrices, type UpdateTimes, blockPrices } from "./block-prices.ts";
import { sustainedClock } from "./characteristics.ts";
import { type Communication, type Network, communication, network } from "./groups.ts";
import { type Pricer, rooflinePricer } from "./pricer.ts";
import { shapeKey } from "./shape-key.ts";
import { type StageCosts, stageCosts } from "./stage-costs.ts";
import { type StageList, stageList } from "./stage-list.ts";

/** What prices are for; without a pricer, kernels run at the roofline of the cluster's first device. */
export interface PricesOptions {
  readonly model: Model;
  readonly cluster: Cluster;
  readonly pricer?: Pricer;
}

/** The prices of one shape of kernels. */
interface Shape {
  readonly blocks: BlockPrices;
  /** By layers of each form, ends, and what hides collectives. */
  readonly stages: Map<number | string, StageCosts>;
}

/** A plan's part of the prices. */
export interface PlanPrices {
  readonly model: Model;
  readonly pricer: Pricer;
  readonly communication: Communication;
  readonly plan: Plan;
  readonly shape: Shape;
  readonly list: StageList;
}

/** One microbatch through a stage of the plan. */
export function stageOf({ model, plan, shape }: PlanPrices, s: Stage): StageCosts {
  const { blocks, stages: known } = shape;
  const ends = (s.embedding ? 2 : 0) + (s.head ? 1 : 0);
  const hiding = (plan.overlapGradientProducts ? 2 : 0) + (plan.overlapTensorParallel ? 1 : 0);
  const place = 16 * s.layers + 4 * ends + hiding;
  const even = layerForms(model).length === 1;
  const key = even ? place : `${place} ${countForms(model, s.firstLayer, s.layers).join(" ")}`;
  let costs = known.get(key);
  if (costs === undefined) {
    costs = stageCosts(blocks, model, plan, s);
    known.set(key, costs);
  }
  return costs;
}

/** Memory of prices; it grows with the number of different shapes, groups and message sizes. */
export class Prices {
  readonly model: Model;
  readonly cluster: Cluster;
  readonly #pricer: Pricer | undefined;
  readonly #network: Network;
  readonly #rooflines = new Map<Plan["precision"], Pricer>();
  readonly #shapes = new Map<string, Shape>();
  readonly #updates: UpdateTimes = new Map();
  readonly #lists = new Map<string, StageList>();

  constructor(o: PricesOptions) {
    this.model = o.model;
    this.cluster = o.cluster;
    this.#pricer = o.pricer;
    this.#network = network(o.cluster);
  }

  /** What `plan` needs of them; throws TriremeError "PRECISION" like `rooflinePricer`. */
  of(plan: Plan): PlanPrices {
    const pricer = this.#pricer ?? this.#roofline(plan.precision);
    const talk = communication(this.#network, plan, this.model.experts?.active);
    const key = shapeKey(plan);
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = {
        blocks: blockPrices(this.model, plan, pricer, talk, this.#updates),
        stages: new Map(),
      };
      this.#shapes.set(key, shape);
    }
    return { model: this.model, plan, pricer, communication: talk, shape, list: this.stages(plan) };
  }

  /** The stages of `plan`. */
  stages(plan: Plan): StageList {
    if (plan.stageLayers !== undefined) return stageList(this.model, plan);
    const key = `${plan.pp} ${plan.vpp} ${plan.schedule} ${plan.recomputeLayers}`;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = stageList(this.model, plan);
      this.#lists.set(key, list);
    }
    return list;
  }

  #roofline(precision: Plan["precision"]): Pricer {
    let pricer = this.#rooflines.get(precision);
    if (pricer === undefined) {
      const device = hostOf(this.cluster, 0).accelerator;
      pricer = rooflinePricer(device, precision, {
        clock: sustainedClock(device),
        devices: hostOf(this.cluster, 0).accelerators,
      });
      this.#rooflines.set(precision, pricer);
    }
    return pricer;
  }
}
