/**
 * Saving a state of 2 GB to a file store beside training: bandwidth against plain writes of the same bytes
 * to the same directory in the same run, and how long training waits for saves. The runtime is one that
 * keeps its state in shared memory and copies it on a thread while the next step computes.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byteTokenizer, createLoader, tokenize } from "@trireme/dataloader";
import { defineRun } from "@trireme/run";
import {
  type CheckpointStore,
  type Runtime,
  type Snapshot,
  type SnapshotBuffer,
  type SnapshotSize,
  runLoop,
} from "@trireme/runtime";
import { SnapshotCopier, fileStore } from "@trireme/runtime/node";
import { TimelineBuilder } from "@trireme/timeline";

const files = 4;
const fileBytes = 5e8;
const stateBytes = files * fileBytes;
const chunk = 64 * 2 ** 20;
const saves = 6;
/** Rounds until the memory that files are cached in has been had from the machine. */
const warm = 2;
/** Time in which a step computes gradients; a step of a state of 2 GB takes longer on any CPU. */
const computeSeconds = 1;

const now = (): number => performance.now() / 1e3;

/** Weights that lie in shared memory; an update writes to all of their pages. */
class SharedState implements Runtime {
  readonly numeric = false;
  readonly #files = Array.from(
    { length: files },
    () => new Uint8Array(new SharedArrayBuffer(fileBytes)),
  );
  readonly #copier = new SnapshotCopier();
  #copying: Promise<void> | undefined;
  #steps = 0;
  /** Time that training waited for the snapshot of each save. */
  readonly waits: number[] = [];
  /** Time of each copy, on its thread. */
  readonly copies: number[] = [];

  start(): Promise<void> {
    this.#files.forEach((file, i) => file.fill(i + 1));
    return Promise.resolve();
  }

  async step({ step }: { readonly step: number }) {
    const begun = now();
    // Gradients are computed elsewhere; the thread of the loop has nothing to do meanwhile.
    await new Promise((resolve) => setTimeout(resolve, computeSeconds * 1e3));
    if (this.#copying !== undefined) {
      const waiting = now();
      await this.#copying;
      this.waits.push(this.waits.pop()! + now() - waiting);
      this.#copying = undefined;
    }
    for (const file of this.#files) for (let at = 0; at < fileBytes; at += 4096) file[at]!++;
    this.#steps = step + 1;
    const timeline = new TimelineBuilder().finish();
    const seconds = now() - begun;
    return { step, loss: Number.NaN, tokens: 1, seconds, gradientNorm: Number.NaN, timeline };
  }

  evaluate() {
    return Promise.resolve({ loss: Number.NaN, tokens: 1 });
  }

  snapshotSizes(): readonly SnapshotSize[] {
    return this.#files.map((_, i) => ({ name: `${i}.bin`, size: fileBytes }));
  }

  snapshot(buffer: SnapshotBuffer): Promise<Snapshot> {
    const begun = now();
    const copies = this.#files.map((from, i) => ({ from, to: buffer.take(`${i}.bin`, fileBytes) }));
    const taken = this.#copier.copy(copies).then(() => void this.copies.push(now() - begun));
    this.#copying = taken;
    const list = copies.map(({ to }, i) => ({ name: `${i}.bin`, bytes: to }));
    this.waits.push(now() - begun);
    return Promise.resolve({ step: this.#steps, files: list, taken });
  }

  restore(): Promise<void> {
    return Promise.resolve();
  }

  stop(): Promise<void> {
    return this.#copier.close();
  }
}

/**
 * Writes the bytes to one new file after another and forces each to disk. The files of the time before go
 * only then, as the store's do: what is written to memory that was just freed is written several times
 * faster, and neither may have that for itself.
 */
async function plainWrite(
  directory: string,
  turn: number,
  bytes: readonly Uint8Array[],
): Promise<number> {
  const begun = now();
  for (const [i, file] of bytes.entries()) {
    const handle = await open(join(directory, `plain-${turn}-${i}`), "wx");
    for (let at = 0; at < file.byteLength; at += chunk) {
      await handle.write(file, at, Math.min(chunk, file.byteLength - at), at);
    }
    await handle.sync();
    await handle.close();
  }
  for (const i of bytes.keys()) rmSync(join(directory, `plain-${turn - 1}-${i}`), { force: true });
  return now() - begun;
}

interface Measured {
  readonly plain: readonly number[];
  readonly saved: readonly number[];
  readonly waits: readonly number[];
  readonly copies: readonly number[];
}

let measured: Promise<Measured> | undefined;

async function measure(): Promise<Measured> {
  const root = mkdtempSync(join(tmpdir(), "trireme-save-bench-"));
  try {
    const [plain, saved]: [number[], number[]] = [[], []];
    const store = fileStore(join(root, "checkpoints"), { keep: 1 });
    // A plain write of the same memory goes with each save, after it and before it in turn: whoever comes
    // first pays for memory that the machine has taken back meanwhile.
    const timed: CheckpointStore = {
      newest: () => store.newest(),
      load: (step) => store.load(step),
      async save(snapshot) {
        const bytes = snapshot.files.slice(0, files).map((file) => file.bytes);
        const write = async (): Promise<void> => {
          plain.push(await plainWrite(root, snapshot.step, bytes));
        };
        if (snapshot.step % 2 === 0) await write();
        const begun = now();
        await store.save(snapshot);
        saved.push(now() - begun);
        if (snapshot.step % 2 === 1) await write();
      },
    };
    const run = defineRun({
      model: { layers: 1, hidden: 8, heads: 1, context: 8 },
      plan: { globalBatch: 1 },
      data: { path: "made here" },
      steps: saves,
      checkpoint: { every: 1 },
      evaluate: { every: saves, batches: 1 },
    });
    const text = "saving ".repeat(200);
    const dataset = tokenize([{ name: "a", text }], byteTokenizer());
    const loader = createLoader({ dataset, ...run.plan, seed: 1 });
    const runtime = new SharedState();
    await runLoop({ run, runtime, loader, store: timed });
    return { plain, saved, waits: runtime.waits, copies: runtime.copies };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

export const benchmarks = [
  {
    id: "runtime/save-bandwidth",
    what: "bandwidth of saving 2 GB, checksums and all, as a share of that of plain writes with fsync",
    unit: "fraction",
    better: "higher",
    target: 0.7,
    measure: async (): Promise<number> => {
      const { plain, saved } = await (measured ??= measure());
      return mean(plain.slice(warm)) / mean(saved.slice(warm));
    },
  },
  {
    id: "runtime/save-stall",
    what: "longest wait of training for a snapshot of 2 GB, from the second save on, as a share of the save's time",
    unit: "fraction",
    better: "lower",
    target: 0.05,
    measure: async (): Promise<number> => {
      const { saved, waits } = await (measured ??= measure());
      return Math.max(...waits.slice(1).map((wait, i) => wait / saved[i + 1]!));
    },
  },
  {
    id: "runtime/save-rate",
    what: "bytes of a state of 2 GB made durable in a second",
    unit: "B/s",
    better: "higher",
    target: null,
    measure: async (): Promise<number> =>
      stateBytes / mean((await (measured ??= measure())).saved.slice(warm)),
  },
  {
    id: "runtime/snapshot-copy",
    what: "time of the copy of 2 GB into a kept buffer, on its thread, beside a step",
    unit: "s",
    better: "lower",
    target: null,
    measure: async (): Promise<number> => median((await (measured ??= measure())).copies.slice(1)),
  },
] as const;
