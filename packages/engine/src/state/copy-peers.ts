import { backupPeers, defineLayout } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import { type Model, type Plan, ranks, stages } from "@trireme/workload";
import { stagedLayout } from "../staged/staged-layout.ts";

/**
 * Of each rank, whose memory keeps its copy: a rank without a parallel group in common where there is
 * one (ByteRobust, SOSP 2025), each counted as a host of its own.
 */
export function copyPeers(model: Model, plan: Plan): Int32Array {
  if (plan.pipelines !== undefined) return stagedPeers(model, plan);
  const { tp, pp, vpp, dp, cp, ep, etp, zero } = plan;
  const stageLayers = stages(model, plan).map(({ layers }) => layers);
  const { layers } = model;
  const degrees = { tp, pp, vpp, dp, cp, ep, expertTp: etp, zero };
  const peers = backupPeers(defineLayout({ layers, ...degrees, stageLayers }), 1);
  if (!peers.ok) throw new TriremeError("CHECKPOINT", peers.reason);
  return peers.peers;
}

/** Where pipelines differ: the ranks so many places on, as many as have the fewest groups in common. */
function stagedPeers(model: Model, plan: Plan): Int32Array {
  const count = ranks(plan);
  const met = Array.from({ length: count }, (_, rank) => {
    const { layout, pipeline } = stagedLayout(model, plan, rank);
    const summed = (layout.sums ?? []).flatMap(({ members }) => members);
    return { pipeline, others: new Set([...summed, ...layout.tensorRanks]) };
  });
  const common = (shift: number): number =>
    met.filter(({ pipeline, others }, rank) => {
      const peer = (rank + shift) % count;
      return others.has(peer) || met[peer]!.pipeline === pipeline;
    }).length;
  let best = 1;
  for (let shift = 2; shift < count; shift++) if (common(shift) < common(best)) best = shift;
  return Int32Array.from({ length: count }, (_, rank) => (rank + best) % count);
}
