/** The routers of a rank's layers, and what they learn from a step. */
import type { Communicator } from "@trireme/collectives";
import type { ResolvedRouter } from "@trireme/run";
import type { Experts, Model, Plan } from "@trireme/workload";
import type { Pool } from "../memory/pool.ts";
import type { RankLayout } from "../layout/rank-layout.ts";
import type { StageWeights } from "../weights/stage-weights.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import { capacityGroups } from "./capacity-groups.ts";
import { Router } from "./router.ts";

/** What the routers of a rank need. */
export interface LayerRoutersOptions {
  readonly model: Model;
  readonly plan: Plan;
  readonly layout: RankLayout;
  readonly pool: Pool;
  readonly router?: ResolvedRouter | undefined;
  /** By stage of the schedule. */
  readonly weights: ReadonlyMap<number, StageWeights>;
  /** The communicator of some ranks. */
  readonly groupOf: (members: readonly number[]) => Communicator;
}

/** Where the state of a layer's router begins in the names of its tensors. */
const loadName = /^(h\.\d+)\.mlp\.router\.load$/;

export class LayerRouters {
  /** By layer, for each stage. */
  readonly #stages: { readonly routers: Router[]; readonly peers: Communicator }[] = [];
  readonly #byLayer = new Map<string, Router>();
  readonly #experts: number;

  constructor(options: LayerRoutersOptions) {
    const { model, layout, weights, groupOf } = options;
    this.#experts = model.experts?.count ?? 0;
    if (model.experts === undefined) return;
    const make = routerMaker(options, model.experts);
    for (const { stage, peers } of layout.stages) {
      const routers = stageRouters(weights.get(stage.stage)!, make);
      for (const [layer, router] of routers) this.#byLayer.set(layer, router);
      if (routers.size > 0) {
        this.#stages.push({ routers: [...routers.values()], peers: groupOf(peers) });
      }
    }
  }

  /** The router of a layer by its name. */
  of(layer: string): Router {
    const router = this.#byLayer.get(layer);
    if (router === undefined) throw new Error(`no router of ${layer} on this rank`);
    return router;
  }

  /** Tells every router what the whole global batch chose. */
  endStep(): void {
    for (const { routers, peers } of this.#stages) {
      const count = this.#experts;
      const counts = new Int32Array(routers.length * count);
      routers.forEach((router, i) => counts.set(router.counts, i * count));
      peers.allReduce(counts).wait();
      routers.forEach((router, i) => router.endStep(counts.subarray(i * count, (i + 1) * count)));
    }
  }
}

type Make = (weights: StageWeights, layer: string, load: Tensor) => Router;

/** The routers of a stage by their layers. */
function stageRouters(weights: StageWeights, make: Make): ReadonlyMap<string, Router> {
  const routers = new Map<string, Router>();
  for (const { name, value } of weights.states.flatMap(({ parameters }) => parameters)) {
    const layer = loadName.exec(name)?.[1];
    if (layer !== undefined) routers.set(layer, make(weights, layer, value));
  }
  return routers;
}

function routerMaker(
  { model, plan, layout, pool: { memory }, router: asked }: LayerRoutersOptions,
  experts: Experts,
): Make {
  // What moves a selection bias is training, too.
  const router = { ...asked, ...(model.adapter !== undefined && { biasRate: 0 }) };
  const origin = { plan, pieces: layout.pieces, tensor: layout.shares.tensor };
  const factor = plan.expertCapacity;
  const capacity =
    factor === undefined
      ? undefined
      : { factor, groups: capacityGroups(origin, router.capacityParts ?? {}) };
  const batchTokens = plan.globalBatch * plan.sequence;
  return (weights, layer, load) => {
    const bias = experts.selectionBias
      ? view(memory, weights.get(`${layer}.mlp.router.selection_bias`).value)
      : undefined;
    const state = { load: view(memory, load), bias };
    return new Router(experts, router, state, capacity, batchTokens);
  };
}
