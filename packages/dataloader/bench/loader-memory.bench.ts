import { type ChildProcess, fork } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MB } from "@trireme/core";
import { encodeMegatronIndex } from "@trireme/dataloader";

/**
 * Memory of the loaders of a host of 16 ranks with 2 workers each, over 300 sources of 0.5 MB of state:
 * as one loader per worker, 32 processes that hold every source each, and disaggregated, 4 processes
 * that hold 75 sources each, 16 data constructors and the process that plans and reads. Real processes
 * on the built package. Memory is the proportional set size (a page that several processes share counts
 * in part in each, so that Node's own code is not counted again and again) less that of an idle Node
 * process among them, summed. Rings are files in memory, which no process maps: they are added in full.
 * The 32 workers are alike, so 3 are run; the first measured must be within a tenth of the mean.
 */
const [ranks, workers, sources, documents] = [16, 2, 300, 65_536] as const;
const sourceHosts = 4;
const run = 3;

interface Memory {
  readonly perWorker: number;
  readonly disaggregated: number;
}
let measured: Promise<Memory | undefined> | undefined;

/** Bytes that a process counts for. */
function proportionalSize(pid: number): number {
  const found = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
  if (found === null) throw new Error(`/proc/${pid}/smaps_rollup has no Pss`);
  return Number(found[1]) * 1024;
}

/** Writes one source, under 300 names. */
function writeSources(folder: string): void {
  const lengths = new Int32Array(documents).fill(10);
  const starts = Float64Array.from({ length: documents + 1 }, (_, i) => i);
  const index = encodeMegatronIndex({ type: "u16", lengths, documents: starts });
  writeFileSync(join(folder, "all.idx"), index);
  writeFileSync(join(folder, "all.bin"), "");
  truncateSync(join(folder, "all.bin"), 2 * 10 * documents);
  for (let s = 0; s < sources; s++) {
    for (const end of ["idx", "bin"])
      symlinkSync(join(folder, `all.${end}`), join(folder, `${s}.${end}`));
  }
}

async function measure(): Promise<Memory | undefined> {
  const dist = new URL("../dist/node/index.js", import.meta.url);
  if (!existsSync("/proc/self/smaps_rollup") || !existsSync(dist)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "trireme-memory-"));
  const running: ChildProcess[] = [];
  const child = fileURLToPath(new URL("./loader-memory-child.mjs", import.meta.url));
  const start = (options: object): Promise<{ pids: number[]; rings: string[] }> => {
    const started = fork(child, [JSON.stringify(options)], { execArgv: ["--expose-gc"] });
    running.push(started);
    return new Promise((resolve, reject) => {
      started.once("message", (message) => resolve(message as { pids: number[]; rings: string[] }));
      started.once("exit", (code) => reject(new Error(`a loader process ended with ${code}`)));
    });
  };
  const stop = (): void => {
    // Loaders end with the process that they load for.
    for (const process of running.splice(0)) process.kill("SIGTERM");
  };
  const common = { sources, prefix: `${folder}/`, dp: ranks, steps: 4 };
  try {
    writeSources(folder);
    const above = async (pids: readonly number[]): Promise<readonly number[]> => {
      const idle = await start({ kind: "idle" });
      const base = proportionalSize(idle.pids[0]!);
      return pids.map((pid) => proportionalSize(pid) - base);
    };
    const single = [];
    for (let worker = 0; worker < run; worker++) {
      const { pids } = await start({
        ...common,
        kind: "worker",
        ranks: [worker],
        actors: "inline",
      });
      single.push(...pids);
    }
    const each = await above(single);
    stop();
    const mean = each.reduce((a, b) => a + b, 0) / run;
    if (each.some((bytes) => Math.abs(bytes - mean) > 0.1 * mean))
      throw new Error(`workers that are alike take ${each.join(", ")} bytes`);

    const all = Array.from({ length: ranks }, (_, rank) => rank);
    const host = await start({
      ...common,
      kind: "host",
      ranks: all,
      actors: "process",
      sourceHosts,
    });
    const parts = await above(host.pids);
    const rings = host.rings.reduce((sum, path) => sum + 512 * (statSync(path).blocks ?? 0), 0);
    return {
      perWorker: ranks * workers * mean,
      disaggregated: parts.reduce((a, b) => a + b, 0) + rings,
    };
  } finally {
    stop();
    rmSync(folder, { recursive: true });
  }
}

const once = (): Promise<Memory | undefined> => (measured ??= measure());

export const benchmarks = [
  {
    id: "dataloader/memory-disaggregated",
    what: "memory above idle Node processes of the loaders of 16 ranks x 2 workers x 300 sources of 0.5 MB, one loader per worker over source loaders that share processes (PSS; 3 of the 32 workers run)",
    unit: "ratio",
    better: "higher",
    target: 10,
    measure: async (): Promise<number | undefined> => {
      const memory = await once();
      return memory === undefined ? undefined : memory.perWorker / memory.disaggregated;
    },
  },
  {
    id: "dataloader/memory-host",
    what: "memory above idle Node processes of all loader processes of that host, disaggregated (PSS, rings included)",
    unit: "MB",
    better: "lower",
    target: null,
    measure: async (): Promise<number | undefined> => {
      const memory = await once();
      return memory === undefined ? undefined : memory.disaggregated / MB(1);
    },
  },
];
