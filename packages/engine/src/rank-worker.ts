/** The thread of one rank: builds the rank, then answers requests one after another. */
import { parentPort, workerData } from "node:worker_threads";
import { createCommunicator } from "@trireme/collectives";
import { TriremeError } from "@trireme/core";
import { createSchedule, lower } from "@trireme/schedulers";
import { defineMesh } from "@trireme/topology";
import { axes, microbatches, ranks } from "@trireme/workload";
import { createKernels } from "./kernels/kernels.ts";
import { createRankMemory } from "./rank-memory.ts";
import type { Failure, RankSeed, Request, StoredParameter, Turn, Value } from "./protocol.ts";
import { Rank } from "./rank.ts";
import { awaitGate } from "./start-gate.ts";
import { type Tensor, view } from "./tensor.ts";
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
});
const { memory, base } = createRankMemory();
const pool = new Pool(memory, base);

function build(): Rank {
  const schedule = createSchedule(plan.schedule, {
    ranks: plan.pp,
    chunks: plan.vpp,
    microbatches: microbatches(plan),
  });
  return new Rank({
    ...seed,
    mesh: defineMesh(axes(plan)),
    schedule: lower(schedule),
    communicator,
    kernels: createKernels(memory),
    pool,
    now,
  });
}

function answer(rank: Rank, request: Request): Value {
  switch (request.kind) {
    case "train": {
      const { batch, update, learningRate } = request;
      const step = rank.train(batch, update, learningRate);
      return { kind: "train", ...step, spans: rank.spans.rows() };
    }
    case "evaluate":
      return { kind: "evaluate", lossSum: rank.evaluate(request.batch) };
    case "generate":
      return { kind: "generate", tokens: rank.generate(request.options) };
    case "store":
      return { kind: "store", parameters: rank.isFirstReplica ? [...stored(rank)] : [] };
    case "gradients": {
      const mine = rank.parameters.list.filter(({ name }) => rank.owns(name));
      const gradients = rank.isFirstReplica
        ? mine.map(({ name, gradient }) => ({ name, gradient: copy(gradient) }))
        : [];
      return { kind: "gradients", gradients };
    }
    case "load":
      load(rank, request.parameters);
      return { kind: "load" };
  }
}

function* stored(rank: Rank): Iterable<StoredParameter> {
  for (const { name, value, firstMoment, secondMoment } of rank.parameters.list) {
    if (!rank.owns(name)) continue;
    yield {
      name,
      dims: value.dims,
      value: copy(value),
      firstMoment: copy(firstMoment),
      secondMoment: copy(secondMoment),
    };
  }
}

function load(rank: Rank, parameters: readonly StoredParameter[]): void {
  for (const from of parameters) {
    const into = rank.parameters.get(from.name);
    view(memory, into.value).set(from.value);
    view(memory, into.firstMoment).set(from.firstMoment);
    view(memory, into.secondMoment).set(from.secondMoment);
  }
}

function copy(tensor: Tensor): Float32Array {
  return view(memory, tensor).slice();
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
parentPort!.postMessage(
  attempt(() => {
    rank = build();
    return { kind: "ready", names: rank.parameters.list.map(({ name }) => name), bytes: pool.peak };
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
