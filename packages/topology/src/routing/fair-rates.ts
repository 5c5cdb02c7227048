import { type Fabric, capacities } from "../fabric/fabric.ts";
import { FlowRates } from "./flow-rates.ts";
import { type Routes, routeOf } from "./route.ts";

/**
 * Max-min fair rate of every routed flow, in bytes per second, all flows together on the fabric in
 * its present state; infinite for a flow from an endpoint to itself. See `FlowRates` for flows that
 * come and go.
 */
export function fairRates(fabric: Fabric, routes: Routes): Float64Array {
  const rates = new FlowRates(capacities(fabric));
  for (let f = 0; f < routes.flows; f++) rates.add(routeOf(routes, f));
  // Flows are numbered in the order in which they were added.
  return Float64Array.from({ length: routes.flows }, (_, f) => rates.rate(f));
}
