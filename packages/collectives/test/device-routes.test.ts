import { expect, test } from "vitest";
import { deviceRoutes } from "@trireme/collectives";
import { defineCluster, megascaleFabric } from "@trireme/topology";

test("pairs of devices have links with capacities, the fabric's under their own numbers", () => {
  const fabric = megascaleFabric({ hosts: 16 });
  const cluster = defineCluster({ host: "dgx-a100-80", hosts: 16, fabric });
  const { capacities, links } = deviceRoutes(cluster, { from: [0, 0, 5], to: [1, 9, 5] });
  const cables = 2 * fabric.graph.cables;
  // Inside the host by links of devices; between hosts by the fabric as well; to itself by none.
  expect(links[0]!.every((link) => link >= cables)).toBe(true);
  expect(links[1]!.some((link) => link < cables)).toBe(true);
  expect(links[2]).toEqual([]);
  for (const link of links.flat()) expect(capacities[link]).toBeGreaterThan(0);
});
