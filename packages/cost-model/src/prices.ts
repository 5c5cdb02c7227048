/**
 * What plans of one model on one cluster share: kernel times by shape, collective times by group and size,
 * stages by number. It only remembers, so that a plan costs the same whatever was priced before.
 */
import type { Bytes, Seconds } from "@trireme/core";
import { type Cluster, type Host, hostOf, peakOf } from "@trireme/topology";
import {
  type Model,
  type Plan,
  type Stage,
  type StageParameters,
  countForms,
  layerForms,
  recomputedLayers,
  stageParameters,
} from "@trireme/workload";
import { type BlockPrices, type UpdateTimes, blockPrices } from "./block-prices.ts";
import { loadedPricer } from "./expert-load.ts";
import {
  type Communication,
  type Network,
  type Operation,
  communication,
  network,
  stageCommunication,
  timeAmong,
} from "./groups.ts";
import { type Held, type MemoryOverhead, heldByKind, waitingLosses } from "./memory.ts";
import { sustainedClock } from "./power-limit.ts";
import { type Pricer, rooflinePricer } from "./pricer.ts";
import { shapeKey } from "./shape-key.ts";
import { type StageCosts, stageCosts } from "./stage-costs.ts";
import { type StageList, stageList } from "./stage-list.ts";

/** What prices are for; without a pricer, kernels run at the roofline of the cluster's first device. */
export interface PricesOptions {
  readonly model: Model;
  readonly cluster: Cluster;
  readonly pricer?: Pricer;
  /** Tokens of the busiest rank's experts over the mean (`expertLoad`); 1, even, when left out. */
  readonly expertLoad?: number;
}

/** The prices of one shape of kernels. */
interface Shape {
  readonly blocks: BlockPrices;
  /** By layers of each form, ends, and what hides collectives. */
  readonly stages: Map<number | string, StageCosts>;
  /** By the same. */
  readonly parameters: Map<number | string, StageParameters>;
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

/** What tells the stages of one shape apart. */
function stageKey({ model, plan }: PlanPrices, s: Stage): number | string {
  const ends = (s.vocabulary === true ? 4 : 0) + (s.embedding ? 2 : 0) + (s.head ? 1 : 0);
  const hiding = (plan.overlapGradientProducts ? 2 : 0) + (plan.overlapTensorParallel ? 1 : 0);
  const place = 32 * s.layers + 4 * ends + hiding;
  if (layerForms(model).length === 1) return place;
  const counts = (layers: number): string => countForms(model, s.firstLayer, layers).join(" ");
  const again = recomputedLayers(plan, s.layers);
  const some = again > 0 && again < s.layers;
  return `${place} ${counts(s.layers)}${some ? ` ${counts(again)}` : ""}`;
}

/** Parameters of a stage of the plan. */
export function parametersOf(own: PlanPrices, s: Stage): StageParameters {
  const known = own.shape.parameters;
  const key = stageKey(own, s);
  let held = known.get(key);
  if (held === undefined) {
    held = stageParameters(own.model, own.plan, s);
    known.set(key, held);
  }
  return held;
}

/** One microbatch through a stage of the plan. */
export function stageOf(own: PlanPrices, s: Stage): StageCosts {
  const { model, plan, shape } = own;
  const { blocks, stages: known } = shape;
  const key = stageKey(own, s);
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
  readonly #load: number;
  readonly #network: Network;
  readonly #rooflines = new Map<Host, Map<Plan["precision"], Pricer>>();
  readonly #shapes = new Map<string, Shape>();
  readonly #updates: UpdateTimes = new Map();
  readonly #lists = new Map<string, StageList>();
  /** By list of stages, then by shape. */
  readonly #held = new WeakMap<StageList, Map<string, readonly Held[]>>();

  constructor(o: PricesOptions) {
    this.model = o.model;
    this.cluster = o.cluster;
    this.#load = o.model.experts === undefined ? 1 : (o.expertLoad ?? 1);
    this.#pricer = o.pricer === undefined ? undefined : loadedPricer(o.pricer, this.#load);
    this.#network = network(o.cluster);
  }

  /** What `plan` needs of them; throws TriremeError "PRECISION" like `rooflinePricer`. */
  of(plan: Plan, key: string = shapeKey(plan)): PlanPrices {
    const pricer = this.#pricer ?? this.#roofline(plan.precision, hostOf(this.cluster, 0));
    const talk = communication(this.#network, plan, this.model.experts?.active, this.#load);
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = {
        blocks: blockPrices(this.model, plan, pricer, talk, this.#updates),
        stages: new Map(),
        parameters: new Map(),
      };
      this.#shapes.set(key, shape);
    }
    return { model: this.model, plan, pricer, communication: talk, shape, list: this.stages(plan) };
  }

  /**
   * What a stage needs of them that runs on these devices, the slowest of which sets its pace; `plan` is the plan as the
   * stage sees it. Throws TriremeError "PRECISION" like `rooflinePricer`.
   */
  on(plan: Plan, devices: readonly number[]): PlanPrices {
    const peak = (h: Host): number => peakOf(h.accelerator, plan.precision) ?? 0;
    const hosts = devices.map((d) => hostOf(this.cluster, d));
    const slowest = hosts.reduce((a, b) => (peak(b) < peak(a) ? b : a));
    const pricer = this.#pricer ?? this.#roofline(plan.precision, slowest);
    const talk = stageCommunication(this.#network, devices);
    const key = `${shapeKey(plan)} on ${devices[0]!}`;
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      // Updates differ from device to device, and are not shared.
      shape = {
        blocks: blockPrices(this.model, plan, pricer, talk, new Map()),
        stages: new Map(),
        parameters: new Map(),
      };
      this.#shapes.set(key, shape);
    }
    return { model: this.model, plan, pricer, communication: talk, shape, list: this.stages(plan) };
  }

  /** The time of an operation among devices. */
  time(operation: Operation, devices: readonly number[], bytes: Bytes): Seconds {
    return timeAmong(this.#network, operation, devices, bytes);
  }

  /** What the ranks of `plan` hold, by kind of rank; `key` is the plan's `shapeKey`. */
  held(plan: Plan, list: StageList, key: string, overhead: MemoryOverhead): readonly Held[] {
    let byShape = this.#held.get(list);
    if (byShape === undefined) {
      byShape = new Map();
      this.#held.set(list, byShape);
    }
    const own = `${key} ${waitingLosses(plan)}`;
    let held = byShape.get(own);
    if (held === undefined) {
      held = heldByKind(this.model, plan, list, overhead);
      byShape.set(own, held);
    }
    return held;
  }

  /** The stages of `plan`. */
  stages(plan: Plan): StageList {
    if (plan.stageLayers !== undefined) return stageList(this.model, plan);
    const ends = `${plan.accountForEmbedding} ${plan.accountForLoss} ${plan.vocabulary}`;
    const again = plan.recompute === "none" ? 0 : plan.recomputeLayers;
    const key = `${plan.pp} ${plan.vpp} ${plan.schedule} ${again} ${ends}`;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = stageList(this.model, plan);
      this.#lists.set(key, list);
    }
    return list;
  }

  #roofline(precision: Plan["precision"], host: Host): Pricer {
    let known = this.#rooflines.get(host);
    if (known === undefined) {
      known = new Map();
      this.#rooflines.set(host, known);
    }
    let pricer = known.get(precision);
    if (pricer === undefined) {
      const { accelerator, accelerators } = host;
      const clock = sustainedClock(accelerator);
      const alone = rooflinePricer(accelerator, precision, { clock, devices: accelerators });
      pricer = loadedPricer(alone, this.#load);
      known.set(precision, pricer);
    }
    return pricer;
  }
}
