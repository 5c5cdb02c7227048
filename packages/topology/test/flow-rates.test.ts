import fc from "fast-check";
import { expect, test } from "vitest";
import {
  FlowRates,
  fairRates,
  llama3Fabric,
  megascaleFabric,
  routeFlows,
  singleSwitchFabric,
  withLinkStates,
} from "@trireme/topology";

/** Max-min fair rates by the definition: raise all, freeze those on the first full link, repeat. */
function ratesByDefinition(
  capacity: readonly number[],
  routes: readonly (readonly number[])[],
): number[] {
  const rates = routes.map((r) => (r.length === 0 ? Infinity : -1));
  const left = [...capacity];
  for (;;) {
    let [least, full] = [Infinity, -1];
    for (const [link, rest] of left.entries()) {
      const rising = routes.filter((r, f) => rates[f] === -1 && r.includes(link)).length;
      if (rising > 0 && rest / rising < least) [least, full] = [rest / rising, link];
    }
    if (full < 0) return rates;
    for (const [f, route] of routes.entries()) {
      if (rates[f] !== -1 || !route.includes(full)) continue;
      rates[f] = least;
      for (const link of route) left[link]! -= least;
    }
  }
}

const links = 6;
const route = fc.uniqueArray(fc.integer({ min: 0, max: links - 1 }), { maxLength: 4 });
const change = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), route }),
  fc.record({ kind: fc.constant("remove" as const), pick: fc.nat() }),
  fc.record({
    kind: fc.constant("capacity" as const),
    link: fc.integer({ min: 0, max: links - 1 }),
    capacity: fc.integer({ min: 0, max: 20 }),
  }),
);

test("rates after any changes are those of progressive filling from nothing", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: links, maxLength: links }),
      fc.array(fc.tuple(change, fc.boolean()), { maxLength: 40 }),
      (capacity, changes) => {
        const rates = new FlowRates(capacity);
        const now = [...capacity];
        const flows: { id: number; route: number[] }[] = [];
        const check = () => {
          const expected = ratesByDefinition(
            now,
            flows.map((f) => f.route),
          );
          for (const [i, f] of flows.entries()) {
            const [is, should] = [rates.rate(f.id), expected[i]!];
            // 1e-6 of a rate of at most 20: rounding of sums, not a different bottleneck.
            expect(is === should || Math.abs(is - should) < 2e-5).toBe(true);
          }
        };
        // Some changes come alone, some in batches before anyone looks.
        for (const [c, look] of changes) {
          if (c.kind === "add") flows.push({ id: rates.add(c.route), route: c.route });
          else if (c.kind === "capacity") {
            rates.setCapacity(c.link, c.capacity);
            now[c.link] = c.capacity;
          } else if (flows.length > 0) {
            const [gone] = flows.splice(c.pick % flows.length, 1);
            rates.remove(gone!.id);
          }
          if (look) check();
        }
        check();
        expect(rates.flows).toBe(flows.length);
      },
    ),
    { numRuns: 300 },
  );
});

const weighted = fc.uniqueArray(
  fc.record({
    link: fc.integer({ min: 0, max: links - 1 }),
    weight: fc.integer({ min: 1, max: 8 }).map((n) => n / 4),
  }),
  { selector: ({ link }) => link, minLength: 1, maxLength: 4 },
);

test("flows with weights fill links by them, and none could be faster without a slower one slowing", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: links, maxLength: links }),
      fc.array(fc.tuple(weighted, fc.boolean()), { minLength: 1, maxLength: 12 }),
      (capacity, list) => {
        const rates = new FlowRates(capacity);
        const flows = list.map(([ways, stays]) => ({
          ways,
          stays,
          id: rates.add(
            ways.map((w) => w.link),
            ways.map((w) => w.weight),
          ),
        }));
        for (const { id, stays } of flows) if (!stays) rates.remove(id);
        const kept = flows.filter(({ stays }) => stays);
        // Flows of now alone are told, and each once.
        const told = [...rates.changed()].sort((a, b) => a - b);
        expect(told).toEqual(kept.map(({ id }) => id));
        expect(rates.changed().size).toBe(0);
        const on = (link: number): { rate: number; weight: number }[] =>
          kept.flatMap(({ id, ways }) =>
            ways
              .filter((w) => w.link === link)
              .map(({ weight }) => ({ rate: rates.rate(id), weight })),
          );
        const load = (link: number): number =>
          on(link).reduce((sum, { rate, weight }) => sum + rate * weight, 0);
        for (let link = 0; link < links; link++) {
          expect(load(link)).toBeLessThan(capacity[link]! * (1 + 1e-9));
        }
        for (const { id, ways } of kept) {
          const rate = rates.rate(id);
          // A full link on which no flow is faster holds each (max-min fairness).
          const held = ways.some(
            ({ link }) =>
              load(link) > capacity[link]! * (1 - 1e-9) &&
              on(link).every((other) => other.rate <= rate * (1 + 1e-9)),
          );
          expect(held).toBe(true);
        }
      },
    ),
  );
  expect(() => new FlowRates([1]).add([0], [0])).toThrow("weight 0 on link 0");
});

test("the textbook case: a long flow shares two links with two short ones", () => {
  const rates = new FlowRates([10, 4]);
  const long = rates.add([0, 1]);
  const first = rates.add([0]);
  const second = rates.add([1]);
  expect([long, first, second].map((f) => rates.rate(f))).toEqual([2, 8, 2]);
  rates.remove(second);
  expect([long, first].map((f) => rates.rate(f))).toEqual([4, 6]);
  rates.setCapacity(1, 0);
  expect([long, first].map((f) => rates.rate(f))).toEqual([0, 10]);
});

test("static rails give a full permutation of MegaScale's ports its full rate, a hash less", () => {
  const fabric = megascaleFabric({ hosts: 256 });
  const n = fabric.graph.endpoints;
  const from = Array.from({ length: n }, (_, e) => e);
  const flows = { from, to: from.map((e) => (e + n / 2) % n) };
  const rates = fairRates(fabric, routeFlows(fabric, flows, { kind: "static" }));
  expect(rates.every((rate) => rate === 25e9)).toBe(true);
  const hashed = fairRates(fabric, routeFlows(fabric, flows));
  expect(Math.max(...hashed)).toBeLessThanOrEqual(25e9 * (1 + 1e-9));
  expect(hashed.reduce((sum, rate) => sum + rate / n, 0)).toBeLessThan(0.8 * 25e9);
});

test("between two pods of Llama 3 every port gets a seventh of its rate at best", () => {
  const fabric = llama3Fabric({ hosts: 768 });
  const from = Array.from({ length: 3072 }, (_, e) => e);
  const flows = { from, to: from.map((e) => e + 3072) };
  const rates = fairRates(fabric, routeFlows(fabric, flows, { kind: "adaptive" }));
  const mean = rates.reduce((sum, rate) => sum + rate / 3072, 0);
  expect(mean).toBeLessThanOrEqual((50e9 / 7) * (1 + 1e-9));
  // Greedy choices leave some uplinks with a flow more than others.
  expect(mean).toBeGreaterThan((50e9 / 7) * 0.8);
});

test("incast divides the port; a degraded port halves it; a flow to itself is not held back", () => {
  const fabric = singleSwitchFabric({ hosts: 5, bandwidth: 8 });
  const routes = routeFlows(fabric, { from: [0, 1, 2, 3, 4], to: [4, 4, 4, 4, 4] });
  expect([...fairRates(fabric, routes)]).toEqual([2, 2, 2, 2, Infinity]);
  const worn = withLinkStates(fabric, [{ cable: 4, state: "degraded", fraction: 0.5 }]);
  expect([...fairRates(worn, routes)]).toEqual([1, 1, 1, 1, Infinity]);
});

test("a flow without links is not held back; unknown links, flows and capacities are refused", () => {
  const rates = new FlowRates([1]);
  expect(rates.rate(rates.add([]))).toBe(Infinity);
  expect(() => rates.add([1])).toThrow("link 1 is outside 0..0");
  expect(() => rates.rate(99)).toThrow("there is no flow 99");
  expect(() => rates.remove(99)).toThrow("there is no flow 99");
  expect(() => rates.setCapacity(0, NaN)).toThrow("link 0 of NaN B/s");
  expect(() => new FlowRates([1, -1])).toThrow("link 1 of -1 B/s");
});
