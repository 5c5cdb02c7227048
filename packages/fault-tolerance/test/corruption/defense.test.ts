/** Injector, detector and policy together: what a defective device does to a training run. */
import { createRng } from "@trireme/core";
import {
  type CorruptionFinding,
  CorruptionInjector,
  applyCorruption,
  corruptionAction,
} from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";
import { normals } from "./matmul.ts";
import { B, I, O, split, step, weights } from "./mlp.ts";

const steps = 60;
const devices = 4;

/** Steps are done on the devices in turn; device 2 flips a sign in one of three products. */
function train(defective: boolean, defended: boolean) {
  const injector = new CorruptionInjector({
    seed: 5,
    targets: ["gemm-output"],
    model: { kind: "flip", bits: "sign" },
    rate: { per: "flop", value: defective ? 0.4 : 0 },
    persistence: "transient",
    devices: [2],
  });
  const cordoned = new Set<number>();
  const findings: CorruptionFinding[] = [];
  let state = weights(createRng(1));
  let loss = 0;
  let turn = 0;
  for (let number = 0; number < steps;) {
    const rng = createRng(number);
    const batch = [normals(B * I, rng), Array.from({ length: B }, () => rng.integer(O))] as const;
    while (cordoned.has(turn % devices)) turn++;
    const device = turn++ % devices;
    const done = step(
      state,
      ...batch,
      (_, value) => value,
      (c) => {
        const visit = { device, target: "gemm-output", format: "float32", work: 1 } as const;
        const corruption = injector.visit({ ...visit, size: c.length });
        if (corruption !== undefined) applyCorruption(c, corruption);
      },
    );
    if (defended && !done.checksums) {
      findings.push({ time: turn, step: number, detector: "checksum", device, committed: false });
      const action = corruptionAction(findings);
      if (action.kind === "cordon") cordoned.add(action.device);
      continue; // Done again, by the next device.
    }
    state = split(done.updated);
    loss = done.loss;
    number++;
  }
  return { state, loss, cordoned: [...cordoned], findings: findings.length };
}

describe("a run with a defective device", () => {
  const clean = train(false, true);
  const distance = (run: { state: ReturnType<typeof weights> }): number =>
    run.state.w1.reduce((most, w, i) => Math.max(most, Math.abs(w - clean.state.w1[i]!)), 0);

  it("ends elsewhere when nobody looks", () => {
    expect(distance(train(true, false))).toBeGreaterThan(0.01);
  });

  it("ends where the clean run ends when checksums, recomputation and the cordon stand guard", () => {
    const guarded = train(true, true);
    expect(guarded.cordoned).toEqual([2]);
    expect(guarded.findings).toBe(2);
    // What a checksum lets pass is below the rounding of its sums.
    expect(distance(guarded)).toBeLessThan(1e-4);
    expect(Math.abs(guarded.loss - clean.loss)).toBeLessThan(1e-4);
  });

  it("cordons nobody when all devices are good", () => {
    expect(clean.cordoned).toEqual([]);
    expect(clean.findings).toBe(0);
  });
});
