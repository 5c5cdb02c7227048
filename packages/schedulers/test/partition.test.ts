import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arrangeDevices, balanceStages } from "@trireme/schedulers";

/** All ways to cut n elements into stages, by brute force. */
function* cuts(n: number, stages: number, least: number): Generator<number[]> {
  if (stages === 1) {
    if (n >= least) yield [n];
    return;
  }
  for (let first = least; first <= n; first++) {
    for (const rest of cuts(n - first, stages - 1, least)) yield [first, ...rest];
  }
}

describe("balancing", () => {
  test("6 layers on 4 ranks with embedding and loss as heavy as a layer: 1, 2, 2, 1", () => {
    const b = balanceStages({ elements: "EttttttL", ranks: 4, cost: () => 1 });
    expect(b).toMatchObject({ ok: true, counts: [2, 2, 2, 2], bottleneck: 2 });
    expect(b.ok && b.layout.stages.map((s) => s.replace(/[EL]/g, "").length)).toEqual([1, 2, 2, 1]);
  });
  test("finds the smallest bottleneck that brute force finds, within memory", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 5 })), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 2, max: 15 })), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.boolean(),
        (chain, devices, allowEmpty) => {
          const cost = (e: number, s: number): number => chain[e]![0] / devices[s]![0];
          let best = Infinity;
          for (const counts of cuts(chain.length, devices.length, allowEmpty ? 0 : 1)) {
            let [at, worst] = [0, 0];
            for (const [s, n] of counts.entries()) {
              let [time, memory] = [0, 0];
              for (const end = at + n; at < end; at++) {
                time += cost(at, s);
                memory += chain[at]![1];
              }
              worst = Math.max(worst, memory > devices[s]![1] ? Infinity : time);
            }
            best = Math.min(best, worst);
          }
          const b = balanceStages({
            elements: "t".repeat(chain.length),
            ranks: devices.length,
            cost,
            memory: (e) => chain[e]![1],
            memoryLimit: (s) => devices[s]![1],
            allowEmpty,
          });
          expect(b.ok).toBe(best < Infinity);
          if (!b.ok) return;
          // Sums of thirds may differ in the last place from those of prefix sums.
          expect(b.bottleneck).toBeCloseTo(best, 12);
          // No layer is lost or doubled.
          expect(b.layout.stages.join("")).toBe("t".repeat(chain.length));
          expect(b.counts.reduce((a, n) => a + n, 0)).toBe(chain.length);
        },
      ),
      { numRuns: 300 },
    );
  });
  test("a heavy loss takes layers off the last stage", () => {
    const elements = `E${"t".repeat(32)}L`;
    const cost = (e: number): number => (elements[e] === "L" ? 3 : elements[e] === "E" ? 0 : 1);
    const b = balanceStages({ elements, ranks: 4, cost });
    // 35 in all: no stage can stay under 9.
    expect(b).toMatchObject({ ok: true, bottleneck: 9 });
    expect(b.ok && b.layout.stages.at(-1)).toMatch(/^t{5,6}L$/);
  });
  test("what does not fit says so, and names the numbers", () => {
    expect(balanceStages({ elements: "tt", ranks: 3, cost: () => 1 })).toEqual({
      ok: false,
      reason: "2 elements are fewer than 3 stages; allow empty stages or use 2 stages",
    });
    const tight = balanceStages({
      elements: "tttt",
      ranks: 2,
      cost: () => 1,
      memory: () => 3,
      memoryLimit: () => 5,
    });
    expect(tight).toEqual({
      ok: false,
      reason:
        "no contiguous shares fit the memory: the chain needs at least 12, the 2 stages have 10 together",
    });
  });
  test("bad counts and costs are refused", () => {
    expect(() => balanceStages({ elements: "tt", ranks: 0, cost: () => 1 })).toThrow(
      "0 ranks x 1 chunks",
    );
    expect(() => balanceStages({ elements: "tt", ranks: 1, cost: () => NaN })).toThrow(
      "element 0 (t) on stage 0 has cost NaN",
    );
    expect(() => balanceStages({ elements: "ttt", ranks: 1.5, chunks: 2, cost: () => 1 })).toThrow(
      "1.5 ranks x 2 chunks; both are integers of 1 or more",
    );
    const memory = (): number => 5;
    expect(() =>
      balanceStages({ elements: "tt", ranks: 2, cost: () => 1, memory, memoryLimit: () => NaN }),
    ).toThrow("memory limit of stage 0 is NaN; it is at least 0");
    expect(() => balanceStages({ elements: "tx", ranks: 1, cost: () => 1 })).toThrow(
      "element 1 is x; the letters are E, t, m and L",
    );
  });
});

describe("unequal devices", () => {
  test("take shares by speed, within their memory", () => {
    const a = arrangeDevices({
      elements: "t".repeat(12),
      devices: [
        { speed: 3, memory: 6 },
        { speed: 1, memory: 100 },
        { speed: 2, memory: 100 },
      ],
      cost: () => 1,
      memory: () => 1,
    });
    // 6, 2 and 4 layers take 2 s on each.
    expect(a.ok && a.bottleneck).toBe(2);
  });
  test("the device with most memory goes where most activations are held", () => {
    const a = arrangeDevices({
      elements: "tttt",
      devices: [
        { speed: 1, memory: 2 },
        { speed: 1, memory: 8 },
      ],
      cost: () => 1,
      // The first of two stages of 1F1B holds two microbatches, the last one.
      memory: (_, stage) => 2 - stage,
    });
    expect(a.ok && a.order).toEqual([1, 0]);
    expect(a.ok && a.bottleneck).toBe(2);
  });
  test("more devices than can be permuted are arranged by exchanges", () => {
    const devices = Array.from({ length: 10 }, (_, i) => ({ speed: 1 + (i % 3), memory: 4 }));
    const a = arrangeDevices({ elements: "t".repeat(38), devices, cost: () => 1, memory: () => 1 });
    expect(a.ok && a.order.toSorted((x, y) => x - y)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // 38 of 40 places are taken, so a device of speed 1 holds at least 2 of its 4.
    expect(a.ok && a.bottleneck).toBeLessThanOrEqual(4);
  });
  test("without devices there is nothing to arrange", () => {
    expect(arrangeDevices({ elements: "t", devices: [], cost: () => 1 })).toEqual({
      ok: false,
      reason: "there are no devices",
    });
    expect(() =>
      arrangeDevices({ elements: "t", devices: [{ speed: 0, memory: 1 }], cost: () => 1 }),
    ).toThrow("device 0 has speed 0");
  });
});
