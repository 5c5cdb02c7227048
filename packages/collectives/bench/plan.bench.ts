import { collectiveTime, ringAllReduce, verify } from "@trireme/collectives";
import { defineCluster } from "@trireme/topology";

const cluster = defineCluster({ host: "dgx-h100", hosts: 128 });
const ranks = Array.from({ length: 1024 }, (_, i) => i);

export const benchmarks = [
  {
    id: "collectives/verify-ring-1024",
    what: "expanding and verifying a ring all-reduce on 1,024 ranks (2.1 million sends)",
    unit: "s",
    better: "lower",
    target: 1,
    time: (): void => {
      const verified = verify(ringAllReduce(1024));
      if (!verified.ok) throw new Error(verified.reason);
    },
  },
  {
    id: "collectives/price-1024",
    what: "price of an all-reduce among 1,024 GPUs on 128 hosts",
    unit: "s",
    better: "lower",
    target: null,
    time: (): number => collectiveTime({ operation: "all-reduce", bytes: 2 ** 30, cluster, ranks }),
  },
];
