/**
 * A step as Calculon describes it (github.com/calculon-ai/calculon, `Llm.Application` and `Llm.Execution`), or what of
 * it Calculon has no words for.
 */
import { GBps } from "@trireme/core";
import { type Cluster, hostOf } from "@trireme/topology";
import { type Model, type Plan, isGated, ranks } from "@trireme/workload";
import type { Step } from "../outcome.ts";

/** What Calculon is given; `system` is a file among its own, with the rate of the step's network in it. */
export interface CalculonStep {
  readonly application: Readonly<Record<string, number>>;
  readonly execution: Readonly<Record<string, number | string | boolean>>;
  readonly system: string;
  /** GB/s of one device's port. */
  readonly network: number;
}

/** Its own descriptions of devices, by our names. */
const systems: Readonly<Record<string, string>> = {
  "a100-80": "a100_80g",
  h100: "h100_80g_nvl8",
};

const schedules: ReadonlySet<Plan["schedule"]> = new Set(["gpipe", "1f1b", "interleaved"]);

/** Describes a step; a text says why that cannot be. */
export function describeForCalculon({ model, plan, cluster }: Step): CalculonStep | string {
  const reason = unknownTo(model, plan, cluster);
  if (reason !== undefined) return reason;
  const { accelerator, accelerators, network } = hostOf(cluster, 0);
  const { tp, dp, pp } = plan;
  // tp innermost, then dp, then pp: what of it stays inside a host runs over NVLink.
  const inside = (size: number): 0 | 1 => (size <= accelerators ? 0 : 1);
  return {
    application: {
      hidden: model.hidden,
      feedforward: model.ffn,
      seq_size: plan.sequence,
      attn_heads: model.heads,
      attn_size: model.headDim,
      num_blocks: model.layers,
    },
    execution: {
      num_procs: ranks(plan),
      tensor_par: tp,
      pipeline_par: pp,
      data_par: dp,
      tensor_par_net: 0,
      pipeline_par_net: inside(tp * dp * pp),
      data_par_net: inside(tp * dp),
      batch_size: plan.globalBatch,
      microbatch_size: plan.microbatch,
      datatype: "float16",
      fused_activation: true,
      attention_type: "multihead",
      activation_recompute: recomputation[plan.recompute]!,
      pipeline_interleaving: plan.vpp,
      optimizer_sharding: plan.zero > 0 && dp > 1,
      tensor_par_comm_type: plan.sequenceParallel
        ? "rs_ag"
        : plan.scatterGather && tp > 1
          ? "p2p_rs_ag"
          : "ar",
      tensor_par_overlap: "none",
      seq_par_ag_redo: plan.sequenceParallel && plan.recompute !== "full",
      data_par_overlap: plan.overlapDataParallel && dp > 1,
      weight_offload: false,
      activations_offload: false,
      optimizer_offload: false,
      training: true,
    },
    system: systems[accelerator.name]!,
    network: network.bandwidth / GBps(1),
  };
}

const recomputation: Readonly<Partial<Record<Plan["recompute"], string>>> = {
  none: "none",
  selective: "attn_only",
  full: "full",
};

function unknownTo(m: Model, p: Plan, cluster: Cluster): string | undefined {
  const { accelerator } = hostOf(cluster, 0);
  if (systems[accelerator.name] === undefined) return `no description of ${accelerator.name}`;
  if (m.experts !== undefined) return "experts";
  if (m.latent !== undefined || m.adapter !== undefined || m.encoders.length > 0)
    return "the model";
  if (isGated(m.activation)) return "gated feed-forward blocks";
  if (m.kvHeads !== m.heads) return "grouped-query attention";
  if (p.flashAttention) return "flash attention";
  if (p.cp > 1) return "context parallelism";
  if (p.zero > 1) return "ZeRO-2 and -3";
  if (p.matrixPrecision !== undefined || p.precision === "fp32") return "the precision";
  if (!schedules.has(p.schedule)) return `the schedule ${p.schedule}`;
  return recomputation[p.recompute] === undefined ? `recomputing ${p.recompute}` : undefined;
}
