/** The thread of one rank: builds the rank, then answers requests one after another. */
import { parentPort, workerData } from "node:worker_threads";
import { createCommunicator } from "@trireme/collectives";
import { copyBytes } from "@trireme/collectives/node";
import { TriremeError } from "@trireme/core";
import { defineMesh } from "@trireme/topology";
import { axes, ranks } from "@trireme/workload";
import type { Bucket } from "./bucket.ts";
import { type Kernels, createKernels } from "./kernels/kernels.ts";
import { withBackend } from "./kernels/gemm-backend.ts";
import { createRankMemory } from "./rank-memory.ts";
import { gradientPieces } from "./gradient-pieces.ts";
import { HostMemory } from "./host-place.ts";
import { loadState } from "./load-state.ts";
import { MemoryCopies } from "./memory-copies.ts";
import type { Failure, RankSeed, Request, Turn, Value } from "./protocol.ts";
import { Rank } from "./rank.ts";
import { planSchedule } from "./plan-schedule.ts";
import { awaitGate } from "./start-gate.ts";
import { StateFile, storedParts } from "./state-file.ts";
import { Pool } from "./pool.ts";

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread sends nothing else
const seed = workerData as RankSeed;
const { plan, rank: number } = seed;
/** Seconds on a clock that all threads of the process share. */
const now = (): number => (performance.timeOrigin + performance.now()) / 1e3;

const communicator = createCommunicator({
  memory: seed.arena,
  rank: number,
  ranks: ranks(plan),
  now,
  deadline: seed.deadline,
  ownCore: seed.ownCore,
  copy: copyBytes,
});
const { memory, base } = createRankMemory();
const pool = new Pool(memory, base);

function kernelsOf(of: WebAssembly.Memory): Kernels {
  return withBackend(createKernels(of), of, seed.gemm);
}

function build(): Rank {
  return new Rank({
    ...seed,
    mesh: defineMesh(axes(plan)),
    schedule: planSchedule(plan),
    communicator,
    kernels: kernelsOf(memory),
    host: plan.offload === "optimizer" ? new HostMemory(kernelsOf) : undefined,
    pool,
    now,
  });
}

function answer(rank: Rank, request: Request): Value {
  switch (request.kind) {
    case "train": {
      const { batch, update, learningRate } = request;
      const step = rank.train(batch, update, learningRate);
      copies?.copy(update);
      return { kind: "train", ...step, spans: rank.spans.rows(), strikes: rank.strikes };
    }
    case "evaluate":
      return { kind: "evaluate", lossSum: rank.evaluate(request.batch) };
    case "generate":
      return { kind: "generate", tokens: rank.generate(request.options) };
    case "gradients":
      return { kind: "gradients", pieces: rank.buckets.flatMap((b) => gradientPieces(b)) };
    case "snapshot": {
      const into = request.files[number];
      if (into !== undefined) file.write(into);
      return { kind: "snapshot" };
    }
    case "load":
      loadState(allBuckets(rank), request.state);
      rank.shareValues();
      copies?.clear();
      return { kind: "load" };
    case "memory":
      return { kind: "memory", bytes: pool.peak };
  }
}

function allBuckets(rank: Rank): Bucket[] {
  return [...rank.buckets, ...rank.kept];
}

/** Runs what may fail; a failure is told to the peers at once, so that none waits for this rank. */
function attempt(what: () => Value): Value | Failure {
  try {
    return what();
  } catch (error) {
    const message = `rank ${number}: ${error instanceof Error ? error.message : String(error)}`;
    communicator.abort(message);
    const code = error instanceof TriremeError ? error.code : "RANK_FAILED";
    return { kind: "failure", code, message };
  }
}

let rank: Rank;
let file: StateFile;
let copies: MemoryCopies | undefined;
parentPort!.postMessage(
  attempt(() => {
    rank = build();
    file = new StateFile(storedParts(allBuckets(rank)));
    const { peers } = seed;
    if (peers !== undefined) {
      const [peer, source] = [peers[number]!, peers.indexOf(number)];
      copies = new MemoryCopies(communicator, file, peer, source);
    }
    return {
      kind: "ready",
      file: file.layout,
      bytes: pool.peak,
      copies: copies?.copies,
    };
  }),
);
parentPort!.on("message", ({ turn, request }: Turn) => {
  parentPort!.postMessage(
    attempt(() => {
      if (awaitGate(seed.gate, turn, seed.deadline)) return answer(rank, request);
      throw new TriremeError(
        "DEADLINE",
        `${request.kind} did not reach all ranks in ${seed.deadline} s`,
      );
    }),
  );
});
