/**
 * Random flows through MegaScale's fabric of 131,072 accelerators: routes, and fair rates; and
 * through Frontier's dragonfly by detours.
 */
import { createRng } from "@trireme/core";
import {
  FlowRates,
  capacities,
  megascaleFabric,
  routeFlows,
  routeOf,
  slingshotFabric,
} from "@trireme/topology";

const fabric = megascaleFabric({ hosts: 16_384 });
const count = 100_000;
const rng = createRng(1);
const flows = {
  from: Int32Array.from({ length: count }, () => rng.integer(fabric.graph.endpoints)),
  to: Int32Array.from({ length: count }, () => rng.integer(fabric.graph.endpoints)),
};
const routes = routeFlows(fabric, flows);
const dragonfly = slingshotFabric({ hosts: 9408 });
const across = {
  from: Int32Array.from({ length: count }, () => rng.integer(dragonfly.graph.endpoints)),
  to: Int32Array.from({ length: count }, () => rng.integer(dragonfly.graph.endpoints)),
};
const all = capacities(fabric);
const standing = new FlowRates(all);
for (let f = 0; f < 10_000; f++) standing.add(routeOf(routes, f));
let next = 10_000;

export const benchmarks = [
  {
    id: "topology/route-ecmp",
    what: "flows routed in a second by the ECMP hash",
    unit: "flows/s",
    better: "higher",
    target: 1e6,
    amount: count,
    time: (): void => {
      routeFlows(fabric, flows);
    },
  },
  {
    id: "topology/route-adaptive",
    what: "flows routed in a second to the least loaded uplinks",
    unit: "flows/s",
    better: "higher",
    target: null,
    amount: count,
    time: (): void => {
      routeFlows(fabric, flows, { kind: "adaptive" });
    },
  },
  {
    id: "topology/route-ugal",
    what: "flows routed in a second on Frontier's dragonfly, detours weighed against shortest ways",
    unit: "flows/s",
    better: "higher",
    target: null,
    amount: count,
    time: (): void => {
      routeFlows(dragonfly, across, { kind: "ugal" });
    },
  },
  {
    id: "topology/fair-rates",
    what: "max-min fair rates of 10,000 flows from nothing",
    unit: "s",
    better: "lower",
    target: null,
    time: (): void => {
      const rates = new FlowRates(all);
      for (let f = 0; f < 10_000; f++) rates.add(routeOf(routes, f));
      rates.rate(0);
    },
  },
  {
    id: "topology/fair-rates-incremental",
    what: "one flow more among 10,000 and away again, rates settled each time",
    unit: "s",
    better: "lower",
    target: null,
    time: (): void => {
      const flow = standing.add(routeOf(routes, next++ % count));
      standing.rate(flow);
      standing.remove(flow);
      standing.rate(0);
    },
  },
] as const;
