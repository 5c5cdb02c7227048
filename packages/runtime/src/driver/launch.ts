/** The launch of a generation: who trains in it, with which ranks, and where they meet. */
import { TriremeError } from "@trireme/core";

/** An address that other hosts reach. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** A host's place in a generation. */
export interface LaunchMember {
  readonly host: number;
  /** Global rank of its first worker. */
  readonly firstRank: number;
  /** Workers it starts. */
  readonly ranks: number;
}

/** All that an agent needs to start its workers; the same for every host of a generation. */
export interface Launch {
  readonly generation: number;
  /** In the order of their ranks. */
  readonly members: readonly LaunchMember[];
  /** Ranks in all. */
  readonly world: number;
  /** Where rank 0 listens: a port that was free on its host a moment before. */
  readonly master: Endpoint;
}

/** What a host brings to a launch. */
export interface LaunchHost {
  readonly host: number;
  readonly ranks: number;
  readonly endpoint: Endpoint;
}

/** Ranks are dealt in the order of the hosts; the first host is the master. */
export function planLaunch(generation: number, hosts: readonly LaunchHost[]): Launch {
  const master = hosts[0]?.endpoint;
  if (master === undefined) {
    throw new TriremeError("LAUNCH", `generation ${generation} has no host to launch on`);
  }
  let world = 0;
  const members = hosts.map(({ host, ranks }) => {
    const member = { host, firstRank: world, ranks };
    world += ranks;
    return member;
  });
  return { generation, members, world, master };
}

/** What a rank's environment depends on besides its launch. */
export interface RankEnvironmentOptions {
  readonly run: string;
  readonly launch: Launch;
  readonly host: number;
  readonly localRank: number;
  /** Step to train first: the state to restore is that of the step before. */
  readonly step: number;
  /** Batches passed over so far, after loss spikes: step s trains batch s + skip; default 0. */
  readonly skip?: number;
  /** Version of the code after updates in place; default 0. */
  readonly version?: number;
}

/**
 * The environment of one rank: the variables of torchrun (torch.distributed.run, "Environment
 * Variables"), so that `init_process_group("nccl")` needs nothing else, and ours.
 */
export function rankEnvironment(options: RankEnvironmentOptions): Readonly<Record<string, string>> {
  const { run, launch, host, localRank, step, skip = 0, version = 0 } = options;
  const group = launch.members.findIndex((member) => member.host === host);
  const member = launch.members[group];
  if (member === undefined || localRank < 0 || localRank >= member.ranks) {
    throw new TriremeError(
      "LAUNCH",
      `host ${host} has no local rank ${localRank} in generation ${launch.generation} (${launch.members.map((each) => `host ${each.host}: ${each.ranks}`).join(", ")})`,
    );
  }
  const values = {
    RANK: member.firstRank + localRank,
    LOCAL_RANK: localRank,
    GROUP_RANK: group,
    ROLE_RANK: member.firstRank + localRank,
    ROLE_NAME: "default",
    WORLD_SIZE: launch.world,
    LOCAL_WORLD_SIZE: member.ranks,
    GROUP_WORLD_SIZE: launch.members.length,
    ROLE_WORLD_SIZE: launch.world,
    MASTER_ADDR: launch.master.address,
    MASTER_PORT: launch.master.port,
    TORCHELASTIC_RUN_ID: run,
    TORCHELASTIC_RESTART_COUNT: launch.generation - 1,
    // No agent keeps a TCPStore: rank 0 must open its own.
    TORCHELASTIC_USE_AGENT_STORE: "False",
    TRIREME_RUN: run,
    TRIREME_HOST: host,
    TRIREME_GENERATION: launch.generation,
    TRIREME_STEP: step,
    TRIREME_SKIP: skip,
    TRIREME_VERSION: version,
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}
