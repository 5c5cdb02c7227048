/** The routers of a rank's layers, and what they learn from a step. */
import type { Communicator } from "@trireme/collectives";
import type { Experts } from "@trireme/workload";
import type { StageWeights } from "../stage-weights.ts";
import { view } from "../tensor.ts";
import { Router, type RouterOptions } from "./router.ts";

/** What the routers of a rank need. */
export interface LayerRoutersOptions {
  readonly memory: WebAssembly.Memory;
  readonly experts: Experts;
  readonly router: RouterOptions;
  readonly capacity: number | undefined;
  /** Tokens of a global batch. */
  readonly batchTokens: number;
}

/** Where the state of a layer's router begins in the names of its tensors. */
const loadName = /^(h\.\d+)\.mlp\.router\.load$/;

export class LayerRouters {
  /** By layer, for each stage. */
  readonly #stages: { readonly routers: Router[]; readonly peers: Communicator }[] = [];
  readonly #byLayer = new Map<string, Router>();
  readonly #options: LayerRoutersOptions;

  constructor(options: LayerRoutersOptions) {
    this.#options = options;
  }

  /** Makes the routers of a stage, of which `peers` hold any part. */
  add(weights: StageWeights, peers: Communicator): void {
    const { memory, experts, router, capacity, batchTokens } = this.#options;
    const routers: Router[] = [];
    for (const { name, value } of weights.states.flatMap(({ parameters }) => parameters)) {
      const layer = loadName.exec(name)?.[1];
      if (layer === undefined) continue;
      const bias = experts.selectionBias
        ? view(memory, weights.get(`${layer}.mlp.router.selection_bias`).value)
        : undefined;
      const state = { load: view(memory, value), bias };
      const made = new Router(experts, router, state, capacity, batchTokens);
      routers.push(made);
      this.#byLayer.set(layer, made);
    }
    if (routers.length > 0) this.#stages.push({ routers, peers });
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
      const { count } = this.#options.experts;
      const counts = new Int32Array(routers.length * count);
      routers.forEach((router, i) => counts.set(router.counts, i * count));
      peers.allReduce(counts).wait();
      routers.forEach((router, i) => router.endStep(counts.subarray(i * count, (i + 1) * count)));
    }
  }
}
