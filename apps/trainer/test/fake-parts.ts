/** Parts that train and time in no time: a loss that falls by rule, operators at 10 GFLOP/s. */
import { estimate } from "@trireme/cost-model";
import type { Batch } from "@trireme/dataloader";
import { checkPlan } from "@trireme/engine";
import type { GenerateRequest, Runtime, Snapshot, StepInput, StepResult } from "@trireme/runtime";
import { simulateStep } from "@trireme/simulator";
import { TimelineBuilder } from "@trireme/timeline";
import type { Operator } from "@trireme/workload";
import type { Parts } from "../src/composition.ts";

export class FakeRuntime implements Runtime {
  readonly calls: string[] = [];
  #next = 0;
  /** Set to make a step fail. */
  failAt: number | undefined;

  start(): Promise<void> {
    this.calls.push("start");
    return Promise.resolve();
  }

  step({ step, batch }: StepInput): Promise<StepResult> {
    this.calls.push(`step ${step}`);
    this.#next = step + 1;
    const timeline = new TimelineBuilder({ ranks: 1 });
    const loss = step === this.failAt ? Number.NaN : 4 / (1 + step);
    timeline.add({ rank: 0, lane: "compute", kind: "forward", action: "0F0", start: 0, end: 0.1 });
    return Promise.resolve({
      step,
      loss,
      tokens: batch.rows * (batch.width - 1),
      seconds: 0.1,
      gradientNorm: 1,
      timeline: timeline.finish(),
    });
  }

  evaluate(batch: Batch): Promise<{ loss: number; tokens: number }> {
    return Promise.resolve({ loss: 2.5, tokens: batch.rows * (batch.width - 1) });
  }

  generate({ prompt, tokens }: GenerateRequest): Promise<Int32Array> {
    return Promise.resolve(new Int32Array(tokens).fill(prompt[0]!));
  }

  snapshot(): Promise<Snapshot> {
    const bytes = Uint8Array.of(this.#next);
    return Promise.resolve({ step: this.#next, files: [{ name: "weights.bin", bytes }] });
  }

  restore({ step }: Snapshot): Promise<void> {
    this.calls.push(`restore ${step}`);
    this.#next = step;
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.calls.push("stop");
    return Promise.resolve();
  }
}

export function fakeParts(runtime: FakeRuntime = new FakeRuntime()): Parts {
  let time = 0;
  return {
    runtime: () => runtime,
    checkPlan,
    measureLink: () => Promise.resolve({ bandwidth: 1e9, latency: 1e-5 }),
    measureOperators: (operators: readonly Operator[]) =>
      Promise.resolve(new Map(operators.map((o) => [o.key, o.flops / 10e9 + 1e-6]))),
    simulateStep,
    estimate,
    cores: () => 2,
    memory: () => 8e9,
    now: () => (time += 0.05),
  };
}
