/**
 * AWS's Elastic Fabric Adapter under NCCL, by family of instances: what its plugin states as the
 * network's latency, and the protocols it leaves. EFA does not promise the order of bytes that LL and
 * LL128 need, so that the plugin sets `NCCL_PROTO=simple`, and spares only p5en (aws-ofi-nccl 1.17,
 * `src/platform-aws.cpp`; Apache 2.0).
 */
import { type Seconds, us } from "@trireme/core";
import { defaultLatency } from "@trireme/topology";

/** What EFA makes of NCCL. */
export interface ElasticFabric {
  /** For the network link of a host, `defineLink("network", bandwidth, latency)`. */
  readonly latency: Seconds;
  /** For `ncclEnvironment`. */
  readonly variables: { readonly NCCL_PROTO?: string };
}

const stated = (microseconds: number): Seconds => defaultLatency.network + us(microseconds);
const simple = { NCCL_PROTO: "simple" } as const;

/** By family of instances. */
export const elasticFabric: Readonly<
  Record<"p3dn" | "p4d" | "p5" | "p5en" | "p6-b200" | "p6-b300", ElasticFabric>
> = {
  p3dn: { latency: stated(150), variables: simple },
  p4d: { latency: stated(75), variables: simple },
  p5: { latency: stated(75), variables: simple },
  p5en: { latency: stated(35), variables: {} },
  "p6-b200": { latency: stated(35), variables: simple },
  "p6-b300": { latency: stated(35), variables: simple },
};
