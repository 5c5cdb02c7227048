import { backupPeers, defineLayout } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import { type Model, type Plan, stages } from "@trireme/workload";

/**
 * Of each rank, whose memory keeps its copy: a rank without a parallel group in common where there is
 * one (ByteRobust, SOSP 2025), each counted as a host of its own.
 */
export function copyPeers(model: Model, plan: Plan): Int32Array {
  const { tp, pp, vpp, dp, cp, ep, etp, zero } = plan;
  const stageLayers = stages(model, plan).map(({ layers }) => layers);
  const { layers } = model;
  const degrees = { tp, pp, vpp, dp, cp, ep, expertTp: etp, zero };
  const peers = backupPeers(defineLayout({ layers, ...degrees, stageLayers }), 1);
  if (!peers.ok) throw new TriremeError("CHECKPOINT", peers.reason);
  return peers.peers;
}
