/** The thread of one rank: builds the rank, then answers requests one after another. */
import { parentPort, workerData } from "node:worker_threads";
import { createCommunicator } from "@trireme/collectives";
import { copyBytes } from "@trireme/collectives/node";
import { TriremeError } from "@trireme/core";
import { ranks } from "@trireme/workload";
import type { Bucket } from "../weights/bucket.ts";
import { type BuiltRank, buildRank } from "./build-rank.ts";
import { rankTurns } from "../emulation/rank-turns.ts";
import { gradientPieces } from "../weights/gradient-pieces.ts";
import { loadState } from "../state/load-state.ts";
import { MemoryCopies } from "../state/memory-copies.ts";
import type { Failure, RankSeed, Request, Turn, Value } from "./protocol.ts";
import type { Rank } from "./rank.ts";
import { sleepNow } from "../stage/stage-rehearsal.ts";
import { awaitGate } from "./start-gate.ts";
import { StateFile, storedParts } from "../state/state-file.ts";

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread sends nothing else
const seed = workerData as RankSeed;
const { plan, rank: number } = seed;
const { timeOrigin } = performance;
/** Seconds on a clock that all threads of the process share. */
const now = (): number => (timeOrigin + performance.now()) / 1e3;

const live = seed.emulation?.live;
const real = createCommunicator({
  memory: seed.arena,
  rank: live?.indexOf(number) ?? number,
  ranks: live?.length ?? ranks(plan),
  now,
  deadline: seed.deadline,
  ownCore: seed.ownCore,
  copy: copyBytes,
});
const turns = rankTurns({ ...seed, ranks: ranks(plan), real, now });
const { communicator } = turns;

/** Whether the actions of a rehearsal take their time. */
let sleeps = true;

function answer({ rank, pool }: BuiltRank, request: Request): Value {
  switch (request.kind) {
    case "warm-up": {
      const tokens = new Int32Array(plan.globalBatch * (plan.sequence + 1));
      sleeps = false;
      for (let step = 0; step < request.steps; step++) rank.train(tokens, 1, 0);
      sleeps = true;
      return { kind: "warm-up" };
    }
    case "train": {
      const { batch, update, learningRate } = request;
      turns.begin("train");
      const step = rank.train(batch, update, learningRate);
      turns.end(step.lossSum);
      copies?.copy(update);
      return { kind: "train", ...step, spans: rank.spans.rows(), strikes: rank.strikes };
    }
    case "evaluate": {
      turns.begin("evaluate");
      const lossSum = rank.evaluate(request.batch);
      turns.end(lossSum);
      return { kind: "evaluate", lossSum };
    }
    case "generate":
      return { kind: "generate", tokens: rank.generate(request.options) };
    case "gradients": {
      const pieces = rank.buckets.flatMap((b) => gradientPieces(b, request.all));
      return { kind: "gradients", pieces };
    }
    case "snapshot": {
      const into = request.files[number];
      if (into !== undefined) file.write(into);
      return { kind: "snapshot" };
    }
    case "load":
      turns.begin("load");
      loadState(allBuckets(rank), rank.packed, request.state);
      rank.shareValues();
      turns.end(0);
      copies?.clear();
      return { kind: "load" };
    case "memory":
      return { kind: "memory", bytes: pool.peak };
    case "trace":
      return { kind: "trace", shard: turns.shard() };
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

let built: BuiltRank;
let file: StateFile;
let copies: MemoryCopies | undefined;
parentPort!.postMessage(
  attempt(() => {
    built = buildRank(seed, communicator, now, (seconds) => {
      if (sleeps) sleepNow(seconds);
    });
    const { rank, pool } = built;
    file = new StateFile(storedParts(allBuckets(rank), rank.packed));
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
      if (awaitGate(seed.gate, turn, seed.deadline)) return answer(built, request);
      throw new TriremeError(
        "DEADLINE",
        `${request.kind} did not reach all ranks in ${seed.deadline} s`,
      );
    }),
  );
});
