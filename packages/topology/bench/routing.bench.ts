import { createRng } from "@trireme/core";
import { bench, describe } from "vitest";
import { FlowRates, capacities, megascaleFabric, routeFlows, routeOf } from "@trireme/topology";

const fabric = megascaleFabric({ hosts: 16_384 });
const count = 100_000;
const rng = createRng(1);
const flows = {
  from: Int32Array.from({ length: count }, () => rng.integer(fabric.graph.endpoints)),
  to: Int32Array.from({ length: count }, () => rng.integer(fabric.graph.endpoints)),
};

// Target: 100,000 flows in 100 ms, one million a second, on one core.
describe("100,000 random flows through the MegaScale fabric of 131,072 GPUs", () => {
  bench("ecmp", () => {
    routeFlows(fabric, flows);
  });
  bench("static", () => {
    routeFlows(fabric, flows, { kind: "static" });
  });
  bench("adaptive", () => {
    routeFlows(fabric, flows, { kind: "adaptive" });
  });
});

describe("max-min fair rates", () => {
  const routes = routeFlows(fabric, flows);
  const all = capacities(fabric);
  bench("10,000 flows at once", () => {
    const rates = new FlowRates(all);
    for (let f = 0; f < 10_000; f++) rates.add(routeOf(routes, f));
    rates.rate(0);
  });
  const standing = new FlowRates(all);
  for (let f = 0; f < 10_000; f++) standing.add(routeOf(routes, f));
  let next = 10_000;
  bench("one flow more among 10,000, and away again", () => {
    const flow = standing.add(routeOf(routes, next++ % count));
    standing.rate(flow);
    standing.remove(flow);
    standing.rate(0);
  });
});
