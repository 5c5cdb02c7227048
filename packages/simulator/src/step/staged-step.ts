/** A step of a plan whose pipelines differ, made ready to be played: every rank for itself. */
import { TriremeError } from "@trireme/core";
import { programNetwork } from "../network/program-network.ts";
import { type PlayableStep, sharedHosts, speeds } from "./playable-step.ts";
import type { SimulateOptions } from "./simulated-step.ts";
import { describeStaged } from "./staged-costs.ts";
import { stagedProgram } from "./staged-program.ts";

/**
 * Makes a step of pipelines that differ ready.
 * @throws TriremeError "PLAN" for options that such a step does not have: document lengths, and a budget
 * of multiprocessors.
 */
export function stagedStep(o: SimulateOptions): PlayableStep {
  const { plan, cluster, loading = 0 } = o;
  const without = ["lengths", "routing", "communicationMultiprocessors"] as const;
  const given = without.find((key) => o[key] !== undefined);
  if (given !== undefined) {
    throw new TriremeError("PLAN", `${given} is not known of pipelines that differ; leave it out`);
  }
  const description = describeStaged(o, o.grain === "operator");
  const loads = typeof loading === "number" ? (): number => loading : loading;
  const program = stagedProgram({ plan, cluster, description, loading: loads });
  const identity = Int32Array.from({ length: program.ranks }, (_, rank) => rank);
  const hosts = sharedHosts(cluster, plan);
  return {
    ranks: {
      count: program.ranks,
      rankOf: identity,
      standIn: identity,
      weight: new Int32Array(program.ranks).fill(1),
    },
    program,
    play: {
      ...(o.network === "shared" ? { network: programNetwork({ cluster, program }) } : {}),
      ...(o.jitter === undefined ? {} : { jitter: o.jitter }),
      ...(o.speed === undefined ? {} : { speed: speeds(o.speed, identity) }),
      ...(hosts.length === 0 ? {} : { shared: hosts }),
    },
    folded: false,
    memory: description.costs.memory,
    device: description.costs.device,
  };
}
