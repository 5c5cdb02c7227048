import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeMegatronIndex, keyedPermutation } from "@trireme/dataloader";
import { type MegatronFiles, openMegatronFiles } from "@trireme/dataloader/node";

// 128 MiB of 16-bit tokens: far above the caches of the core, well within the page cache.
const tokens = 2 ** 26;
const sequence = 4096;
const samples = tokens / sequence;

let directory = "";
let files: MegatronFiles | undefined;

async function open(): Promise<MegatronFiles> {
  if (files === undefined) {
    directory = mkdtempSync(join(tmpdir(), "trireme-bench-"));
    const data = new Uint16Array(tokens);
    for (let i = 0; i < tokens; i++) data[i] = (i * 2654435761) >>> 17;
    writeFileSync(join(directory, "x.bin"), data);
    const lengths = Int32Array.of(tokens);
    const index = encodeMegatronIndex({ type: "u16", lengths, documents: Float64Array.of(0, 1) });
    writeFileSync(join(directory, "x.idx"), index);
    files = await openMegatronFiles(join(directory, "x"));
    process.once("exit", () => rmSync(directory, { recursive: true }));
  }
  return files;
}

const seconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** Least seconds of a few runs. */
function least(run: () => void): number {
  let best = Infinity;
  for (let i = 0; i < 5; i++) {
    const start = seconds();
    run();
    best = Math.min(best, seconds() - start);
  }
  return best;
}

/** Reads the whole file in blocks of 1 MiB and does nothing with it. */
function plainRead(): void {
  const descriptor = openSync(join(directory, "x.bin"), "r");
  const block = new Uint8Array(2 ** 20);
  while (readSync(descriptor, block) > 0);
  closeSync(descriptor);
}

async function readAll(position: (i: number) => number): Promise<{ rate: number; share: number }> {
  const { source } = await open();
  const into = new Int32Array(sequence);
  plainRead();
  const ours = least(() => {
    for (let i = 0; i < samples; i++) source.read(position(i) * sequence, into);
  });
  return { rate: tokens / ours, share: least(plainRead) / ours };
}

const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
};
const sequential = once(() => readAll((i) => i));
const shuffled = once(() => readAll(keyedPermutation(samples, 3)));

export const benchmarks = [
  {
    id: "dataloader/read-sequential",
    what: "bandwidth of samples of 4,096 tokens in order from .bin/.idx in the page cache, against a plain read of the file",
    unit: "fraction",
    better: "higher",
    target: 0.6,
    measure: async (): Promise<number> => (await sequential()).share,
  },
  {
    id: "dataloader/read-shuffled",
    what: "bandwidth of samples of 4,096 tokens in shuffled order from .bin/.idx in the page cache, against a plain read of the file",
    unit: "fraction",
    better: "higher",
    target: 0.3,
    measure: async (): Promise<number> => (await shuffled()).share,
  },
  {
    id: "dataloader/read-sequential-rate",
    what: "samples of 4,096 tokens in order from .bin/.idx in the page cache",
    unit: "tokens/s",
    better: "higher",
    target: null,
    measure: async (): Promise<number> => (await sequential()).rate,
  },
  {
    id: "dataloader/read-shuffled-rate",
    what: "samples of 4,096 tokens in shuffled order from .bin/.idx in the page cache",
    unit: "tokens/s",
    better: "higher",
    target: null,
    measure: async (): Promise<number> => (await shuffled()).rate,
  },
];
