/**
 * The constants with which NCCL and RCCL estimate their own algorithms. Latencies in microseconds and
 * bandwidths in GB/s, as the sources write them: NCCL `src/graph/tuning.cc` and `topo.h` (2.27; BSD
 * 3-clause, NVIDIA), RCCL `src/graph/tuning.cc` (commit 0cbce2a, tuning models 3 and 5; AMD).
 */

/** Operations that the tuner knows. */
export type TunedOperation =
  | "all-reduce"
  | "all-gather"
  | "reduce-scatter"
  | "broadcast"
  | "reduce";

export const ncclAlgorithms = [
  "tree",
  "ring",
  "collnet-direct",
  "collnet-chain",
  "nvls",
  "nvls-tree",
  "pat",
] as const;
export type NcclAlgorithm = (typeof ncclAlgorithms)[number];

export const ncclProtocols = ["ll", "ll128", "simple"] as const;
export type NcclProtocol = (typeof ncclProtocols)[number];

/** One number per protocol; 0 where the protocol is not used. */
type PerProtocol = Readonly<Record<NcclProtocol, number>>;
type PerAlgorithm = Readonly<Partial<Record<NcclAlgorithm, PerProtocol>>>;

/** GPU generations that NCCL tells apart. */
export type Generation = "volta" | "ampere" | "hopper" | "blackwell";

export interface TunerProfile {
  readonly name: string;
  readonly base: PerAlgorithm;
  readonly nvlink: PerAlgorithm;
  readonly pci: PerAlgorithm;
  readonly net: PerAlgorithm;
  /** Factors on tree bandwidth by ⌊lg(bytes / 64)⌋; 1 after the last. */
  readonly treeCorrection: Readonly<Record<NcclProtocol, readonly number[]>>;
  readonly ringCorrection?: Readonly<Record<NcclProtocol, readonly number[]>>;
  /** RCCL: share of the bus a protocol reaches, up to two hosts and beyond. */
  readonly busShare?: readonly [PerAlgorithm, PerAlgorithm];
}

const protocols = (ll: number, ll128: number, simple: number): PerProtocol => ({
  ll,
  ll128,
  simple,
});

/** Factors written one after the other, `factor*count` where one comes several times. */
function factors(text: string): number[] {
  return text.split(" ").flatMap((word) => {
    const [factor, count = "1"] = word.split("*");
    return Array.from({ length: Number(count) }, () => Number(factor));
  });
}

/** NCCL 2.27. */
export const ncclProfile: TunerProfile = {
  name: "nccl",
  base: {
    tree: protocols(6.8, 14, 8.4),
    ring: protocols(6.6, 14, 8.4),
    pat: protocols(0, 0, 8),
  },
  nvlink: {
    tree: protocols(0.6, 1.25, 4),
    ring: protocols(0.6, 1.9, 3.4),
    "collnet-direct": protocols(0, 0, 3.7),
    "collnet-chain": protocols(0, 0, 2.8),
    nvls: protocols(0, 0, 25),
    "nvls-tree": protocols(0, 0, 25),
  },
  pci: {
    tree: protocols(1, 1.9, 4),
    ring: protocols(1, 2.5, 5.7),
    "collnet-direct": protocols(0, 0, 3.7),
    "collnet-chain": protocols(0, 0, 2.8),
  },
  net: {
    tree: protocols(5, 8.5, 14),
    ring: protocols(2.7, 4, 14),
    "collnet-direct": protocols(0, 0, 31),
    "collnet-chain": protocols(0, 0, 30),
    nvls: protocols(0, 0, 18),
    "nvls-tree": protocols(0, 0, 20.9),
    pat: protocols(0, 0, 14),
  },
  treeCorrection: {
    ll: factors("1*4 0.9 0.8 0.7*4 0.6 0.5 0.4*2 0.5 0.6 0.7 0.8 0.9"),
    ll128: factors("1*5 0.9 0.8*3 0.7 0.6*6 0.8 0.9*4"),
    simple: factors("0.9*7 0.8 0.7 0.6*2 0.5*4 0.6 0.7 0.8 0.7*2 0.8 0.9*3"),
  },
};

/** RCCL for MI300 (gfx942). */
export const rcclProfile: TunerProfile = {
  name: "rccl",
  base: { tree: protocols(12, 12, 17), ring: protocols(12, 12, 17) },
  nvlink: { tree: protocols(0.9, 0, 2.3), ring: protocols(0.8, 0, 2.1) },
  pci: { tree: protocols(2.2, 0, 5.7), ring: protocols(2.2, 0, 5.7) },
  net: { tree: protocols(10.5, 0, 25), ring: protocols(9.5, 0, 320) },
  treeCorrection: {
    ll: factors("0.1*6 1*5 0.6 1 0.9 1*2 0.1*11"),
    ll128: [],
    simple: factors("0.1*15 0.7 1*10 0.8"),
  },
  ringCorrection: {
    ll: factors("0.1*11 1 0.2 1 0.4*2 0.1 0.2*2 0.1*8"),
    ll128: [],
    simple: factors("0.1*23 0.8 1*3"),
  },
  busShare: [
    { tree: protocols(0.06, 0, 0.11), ring: protocols(0.08, 0, 1) },
    { tree: protocols(0.06, 0, 0.59), ring: protocols(0.08, 0, 1) },
  ],
};

/** Most that LL reaches, by row and by hosts: 1, 2, more. */
export const llMostBandwidth: readonly (readonly [number, number, number])[] = [
  [39, 39, 20.4],
  [87.7, 22.5, 19],
  [141, 45, 35],
  [282, 90, 70],
];

/** Most per channel by hosts (1, 2, more). */
type ByHosts = readonly [number, number, number];
export interface ChannelCaps {
  readonly ringLl128: ByHosts;
  readonly treeLl128: ByHosts;
  readonly tree: ByHosts;
  readonly nvlsTree: ByHosts;
}
const same = (x: number): ByHosts => [x, x, x];
export const channelCaps: Readonly<Record<Generation, ChannelCaps>> = {
  volta: {
    ringLl128: same(20),
    treeLl128: same(20),
    tree: [26.5, 18.5, 10],
    nvlsTree: same(0),
  },
  ampere: {
    ringLl128: same(20),
    treeLl128: same(20),
    tree: [24, 23.6, 17.8],
    nvlsTree: same(0),
  },
  hopper: {
    ringLl128: same(36.7),
    treeLl128: [36.7, 36.7, 29],
    tree: [38.7, 41.4, 36],
    nvlsTree: [0, 57.7, 45.5],
  },
  blackwell: {
    ringLl128: same(40),
    treeLl128: [55.6, 31.67, 20],
    tree: [70, 42.8, 24],
    nvlsTree: [0, 96, 80],
  },
};

/** Share of the bus that LL128 gets: 120 of 128 bytes, and a little for its flags. */
export const ll128Share = 0.92;

/** Share of the bus that in-switch reduction reaches. */
export const nvlsEfficiency: Readonly<Record<Generation, number>> = {
  volta: 0,
  ampere: 0,
  hopper: 0.85,
  blackwell: 0.74,
};

/** What NCCL counts for one NVLink in one direction, GB/s, and the width of a channel on it. */
export const nvlinkBandwidth: Readonly<Record<Generation, { link: number; channel: number }>> = {
  volta: { link: 20, channel: 20 },
  ampere: { link: 20, channel: 20 },
  hopper: { link: 20.6, channel: 30 },
  blackwell: { link: 40.1, channel: 45 },
};

/** Row of `llMostBandwidth` of a generation on one host. */
export const generationRow: Readonly<Record<Generation, number>> = {
  volta: 0,
  ampere: 1,
  hopper: 2,
  blackwell: 3,
};
