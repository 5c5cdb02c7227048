/**
 * A process of the memory benchmark, on the built package as it is published. Its argument is JSON:
 * `{kind: "idle"}`, or a loader for some ranks. Says "ready" when every source has been read from and
 * every rank has had its steps, with the processes that are its own.
 */
import process from "node:process";

const { kind, ...options } = JSON.parse(process.argv[2] ?? "");

let loader;
if (kind === "idle") {
  process.send?.({ pids: [process.pid] });
} else {
  const { loadProgram, placeTree } = await import("@trireme/dataloader");
  const { startHostLoader } = await import("@trireme/dataloader/node");
  const { prefix, sources: count, dp, ranks, actors, sourceHosts = 1, steps } = options;
  const sources = Array.from({ length: count }, (_, s) => ({ name: `s${s}`, prefix: prefix + s }));
  const planner = loadProgram({
    tree: placeTree([{ name: "dp", size: dp, data: "distinct" }]),
    sources: sources.map(({ name }) => name),
    globalBatch: 20 * dp,
  })
    .balance("greedy")
    .plan();
  loader = await startHostLoader({
    planner,
    sources,
    seed: 1,
    construct: { sequence: 256, method: "best-fit" },
    ranks,
    actors,
    sourceHosts,
  });
  const streams = ranks.map((rank) => loader.batches(rank));
  for (let step = 0; step < steps; step++) {
    for (const stream of streams) await stream.next();
  }
  // What opening left behind is no state of a loader.
  globalThis.gc?.();
  const pids = loader.actors().flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  const rings = ranks.flatMap((rank) => {
    const { ring } = loader.feed(rank);
    return ring.kind === "file" ? [ring.path] : [];
  });
  process.send?.({ pids: [process.pid, ...pids], rings });
}
// Alive until the benchmark ends it.
setInterval(() => undefined, 1000);
for (const end of ["disconnect", "SIGTERM"]) {
  process.once(end, () => {
    loader?.close();
    process.exit(0);
  });
}
