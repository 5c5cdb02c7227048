/** A runtime of one weight: small enough that a resumed run can be compared with an unbroken one to the bit. */
import type { Batch } from "@trireme/dataloader";
import type { Runtime, Snapshot, StepInput, StepResult } from "@trireme/runtime";
import { TimelineBuilder } from "@trireme/timeline";

export class FakeRuntime implements Runtime {
  readonly calls: string[] = [];
  readonly losses: number[] = [];
  numeric = true;
  weight = 10;
  #next = 0;
  /** Thrown by the step of this number. */
  failAt: number | undefined;
  /** Loss reported by every step, in place of the weight's. */
  loss: number | undefined;

  start(): Promise<void> {
    this.calls.push("start");
    return Promise.resolve();
  }

  step({ step, batch, learningRate }: StepInput): Promise<StepResult> {
    this.calls.push(`step ${step}`);
    if (step === this.failAt) return Promise.reject(new Error(`rank 1 died in step ${step}`));
    if (step !== this.#next) throw new Error(`step ${step} after ${this.#next - 1}`);
    const gap = this.weight - meanToken(batch);
    this.weight -= learningRate * gap;
    this.#next = step + 1;
    this.losses.push(gap * gap);
    const timeline = new TimelineBuilder({ ranks: 1 });
    timeline.add({ rank: 0, lane: "compute", kind: "forward", action: "0F0", start: 0, end: 0.5 });
    return Promise.resolve({
      step,
      loss: this.loss ?? gap * gap,
      tokens: batch.rows * (batch.width - 1),
      seconds: 0.5,
      gradientNorm: Math.abs(gap),
      timeline: timeline.finish(),
    });
  }

  evaluate(batch: Batch): Promise<{ loss: number; tokens: number }> {
    this.calls.push("evaluate");
    const gap = this.weight - meanToken(batch);
    return Promise.resolve({ loss: gap * gap, tokens: batch.rows * (batch.width - 1) });
  }

  snapshot(): Promise<Snapshot> {
    this.calls.push("snapshot");
    const bytes = new Uint8Array(new Float64Array([this.weight]).buffer.slice(0));
    return Promise.resolve({ step: this.#next, files: [{ name: "weights.bin", bytes }] });
  }

  restore({ step, files }: Snapshot): Promise<void> {
    this.calls.push(`restore ${step}`);
    const { bytes } = files[0]!;
    this.weight = new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0, true);
    this.#next = step;
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.calls.push("stop");
    return Promise.resolve();
  }
}

function meanToken(batch: Batch): number {
  return batch.tokens.reduce((sum, token) => sum + token, 0) / batch.tokens.length / 256;
}
