import type { Batch } from "@trireme/dataloader";
import type { Runtime, Snapshot, SnapshotBuffer, StepInput, StepResult } from "@trireme/runtime";
import { conformance } from "@trireme/runtime/conformance";
import { describe, expect, it } from "vitest";
import { FakeRuntime } from "./fake-runtime.ts";
import { smallLoader, smallRun } from "./small-run.ts";

const [run, loader] = [smallRun(), smallLoader()];

describe("a runtime that keeps its promises", () => {
  const runtime = (): Runtime => new FakeRuntime();
  it.each(conformance({ runtime, run, loader }))("$name", async ({ check }) => {
    await expect(check()).resolves.toBeUndefined();
  });
});

/** Names of the promises that a runtime breaks. */
async function broken(runtime: () => Runtime): Promise<string[]> {
  const names: string[] = [];
  for (const { name, check } of conformance({ runtime, run, loader })) {
    await check().catch(() => names.push(name));
  }
  return names;
}

const promises = {
  step: "a step reports its number, its tokens, its time and its spans",
  deterministic: "the same run takes the same steps, to the bit",
  copy: "a snapshot counts the steps and is not changed by later ones",
  memory: "a snapshot into memory that an earlier one was in is like any other",
  restore: "a fresh runtime goes on from a snapshot to the bit",
  evaluate: "evaluation changes nothing",
  generate: "text is generated as asked, the same for the same seed",
  stop: "stop is safe before start, and twice",
};

class FewTokens extends FakeRuntime {
  override async step(input: StepInput): Promise<StepResult> {
    return { ...(await super.step(input)), tokens: 1 };
  }
}

let started = 0;
class Drifting extends FakeRuntime {
  override start(): Promise<void> {
    this.weight += ++started;
    return super.start();
  }
}

class SharedSnapshot extends FakeRuntime {
  readonly #bytes = new Uint8Array(8);
  override async step(input: StepInput): Promise<StepResult> {
    const result = await super.step(input);
    new DataView(this.#bytes.buffer).setFloat64(0, this.weight, true);
    return result;
  }
  override async snapshot(): Promise<Snapshot> {
    const { step } = await super.snapshot();
    return { step, files: [{ name: "weights.bin", bytes: this.#bytes }] };
  }
}

class CopiesOnce extends FakeRuntime {
  readonly #full = new Set<SnapshotBuffer>();
  override async snapshot(buffer?: SnapshotBuffer): Promise<Snapshot> {
    const fresh = await super.snapshot();
    if (buffer === undefined) return fresh;
    const bytes = buffer.take("weights.bin", 8);
    if (!this.#full.has(buffer)) bytes.set(fresh.files[0]!.bytes);
    this.#full.add(buffer);
    return { step: fresh.step, files: [{ name: "weights.bin", bytes }] };
  }
}

class WrongSizes extends FakeRuntime {
  snapshotSizes(): { name: string; size: number }[] {
    return [{ name: "weights.bin", size: 9 }];
  }
}

class Hasty extends FakeRuntime {
  override async snapshot(): Promise<Snapshot> {
    const { step } = await super.snapshot();
    const bytes = new Uint8Array(8);
    // Copies when it comes to it, and does not hold the update back until then.
    const taken = new Promise<void>((resolve) => {
      setTimeout(() => {
        new DataView(bytes.buffer).setFloat64(0, this.weight, true);
        resolve();
      }, 5);
    });
    return { step, files: [{ name: "weights.bin", bytes }], taken };
  }
}

class Forgetful extends FakeRuntime {
  override async restore(snapshot: Snapshot): Promise<void> {
    const { weight } = this;
    await super.restore(snapshot);
    this.weight = weight;
  }
}

class LearnsFromEvaluation extends FakeRuntime {
  override evaluate(batch: Batch): Promise<{ loss: number; tokens: number }> {
    this.weight *= 0.99;
    return super.evaluate(batch);
  }
}

class Babbling extends FakeRuntime {
  #said = 0;
  generate({ tokens }: { tokens: number }): Promise<Int32Array> {
    return Promise.resolve(new Int32Array(tokens).fill(this.#said++));
  }
}

class StopsOnce extends FakeRuntime {
  override async stop(): Promise<void> {
    if (this.calls.includes("stop")) throw new Error("stopped already");
    await super.stop();
  }
}

it.each([
  [FewTokens, [promises.step]],
  [Drifting, [promises.deterministic, promises.evaluate]],
  // What it writes later is also what a resumed run would start from.
  [SharedSnapshot, [promises.copy, promises.restore]],
  [CopiesOnce, [promises.memory]],
  [WrongSizes, [promises.memory]],
  [Hasty, [promises.restore]],
  [Forgetful, [promises.restore]],
  [LearnsFromEvaluation, [promises.evaluate]],
  [Babbling, [promises.generate]],
  [StopsOnce, [promises.stop]],
] as const)("%o is found out by the promise it breaks, and by no other", async (Broken, names) => {
  expect(await broken(() => new Broken())).toEqual(names);
});
