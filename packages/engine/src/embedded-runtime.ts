/** The runtime that trains for real on this machine: one thread a rank, kernels in WebAssembly. */
import { availableParallelism } from "node:os";
import { communicatorArena } from "@trireme/collectives";
import { type Seconds, TriremeError } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { GenerateRequest, Runtime, Snapshot, StepResult } from "@trireme/runtime";
import { TimelineBuilder } from "@trireme/timeline";
import { coordinate, defineMesh } from "@trireme/topology";
import { axes, boundaryBytes, ranks } from "@trireme/workload";
import type { Failure, Request, StoredParameter, Value } from "./protocol.ts";
import { RankThread } from "./rank-thread.ts";
import { createGate, openGate } from "./start-gate.ts";
import { spansOf } from "./span-log.ts";
import { parametersOf, snapshotOf } from "./stored-parameters.ts";
import { checkPlan } from "./supported-plan.ts";

/** Options of `embeddedRuntime`. */
export interface EmbeddedRuntimeOptions {
  /** Longest wait of a rank for its peers; default 60 s. */
  readonly deadline?: Seconds;
}

/** What `embeddedRuntime` offers beyond `Runtime`. */
export interface EmbeddedRuntime extends Runtime {
  /** Gradients of the last step before clipping, by parameter name: the mean over the global batch. */
  gradients(): Promise<ReadonlyMap<string, Float32Array>>;
}

type Reply<K extends Value["kind"]> = Extract<Value, { kind: K }>;

/** Trains on threads of this process. */
export function embeddedRuntime(options: EmbeddedRuntimeOptions = {}): EmbeddedRuntime {
  return new Embedded(options.deadline ?? 60);
}

class Embedded implements EmbeddedRuntime {
  readonly #deadline: Seconds;
  #run: ResolvedRun | undefined;
  #threads: RankThread[] = [];
  #names: (readonly string[])[] = [];
  #updates = 0;
  readonly #gate = createGate();
  #turn = 0;

  constructor(deadline: Seconds) {
    this.#deadline = deadline;
  }

  async start(run: ResolvedRun): Promise<void> {
    if (this.#run !== undefined) throw new TriremeError("STARTED", "the runtime has been started");
    const { model, plan, optimizer, seed } = run;
    checkPlan(model, plan);
    this.#run = run;
    const count = ranks(plan);
    const arena = communicatorArena(count, { slots: slotsFor(run, count) });
    // The main thread sleeps while ranks work.
    const ownCore = count <= availableParallelism();
    for (let rank = 0; rank < count; rank++) {
      const deadline = this.#deadline;
      const gate = this.#gate;
      const thread = { model, plan, optimizer, seed, rank, arena, gate, ownCore, deadline };
      // Peers of a thread that died would only wait for it.
      this.#threads.push(new RankThread(thread, () => void this.#terminate()));
    }
    const ready = await this.#collect(
      "ready",
      this.#threads.map((thread) => thread.ready()),
    );
    this.#names = ready.map(({ names }) => names);
  }

  async step(input: { step: number; batch: Batch; learningRate: number }): Promise<StepResult> {
    const { step, learningRate } = input;
    const { plan } = this.#started();
    if (!Number.isFinite(learningRate)) {
      throw new TriremeError(
        "LEARNING_RATE",
        `learning rate ${learningRate} is not a finite number`,
      );
    }
    const batch = this.#tokens(input.batch);
    const begin = clock();
    const update = this.#updates + 1;
    const request: Request = { kind: "train", batch, update, learningRate };
    const replies = await this.#ask("train", () => request);
    const seconds = clock() - begin;
    this.#updates = update;
    const timeline = new TimelineBuilder();
    replies.forEach(({ spans }, rank) => {
      for (const span of spansOf(spans, rank, step, begin)) timeline.add(span);
    });
    const tokens = plan.globalBatch * plan.sequence;
    return {
      step,
      loss: replies.reduce((sum, { lossSum }) => sum + lossSum, 0) / tokens,
      tokens,
      seconds,
      gradientNorm: replies[0]!.gradientNorm,
      timeline: timeline.finish(),
    };
  }

  async evaluate(batch: Batch): Promise<{ loss: number; tokens: number }> {
    const { plan } = this.#started();
    const request: Request = { kind: "evaluate", batch: this.#tokens(batch) };
    const replies = await this.#ask("evaluate", () => request);
    const tokens = plan.globalBatch * plan.sequence;
    return { loss: replies.reduce((sum, { lossSum }) => sum + lossSum, 0) / tokens, tokens };
  }

  async generate(options: GenerateRequest): Promise<Int32Array> {
    const { prompt, tokens: count, temperature, seed } = options;
    const { model } = this.#started();
    const strange = prompt.find((token) => token < 0 || token >= model.vocab);
    if (prompt.length === 0 || strange !== undefined) {
      throw new TriremeError(
        "PROMPT",
        prompt.length === 0
          ? "the prompt is empty; give at least one token"
          : `token ${strange} of the prompt is outside of the vocabulary 0..${model.vocab - 1}`,
      );
    }
    const request: Request = { kind: "generate", options: { prompt, count, temperature, seed } };
    // The first replica speaks for all: the others hold the same weights.
    const speakers = this.#threads.filter((_, rank) => this.#isFirstReplica(rank));
    const replies = await this.#ask("generate", () => request, speakers);
    return replies.find(({ tokens }) => tokens.length > 0)?.tokens ?? new Int32Array(0);
  }

  async gradients(): Promise<ReadonlyMap<string, Float32Array>> {
    const replies = await this.#ask("gradients", () => ({ kind: "gradients" }));
    return new Map(replies.flatMap((r) => r.gradients.map((g) => [g.name, g.gradient] as const)));
  }

  async snapshot(): Promise<Snapshot> {
    this.#started();
    const replies = await this.#ask("store", () => ({ kind: "store" }));
    return snapshotOf(
      replies.flatMap(({ parameters }) => parameters),
      this.#updates,
    );
  }

  async restore(snapshot: Snapshot): Promise<void> {
    this.#started();
    const stored = new Map(parametersOf(snapshot).map((p) => [p.name, p]));
    const loads = this.#names.map((names) => names.map((name) => fitting(stored.get(name), name)));
    await this.#ask("load", (rank) => ({ kind: "load", parameters: loads[rank]! }));
    this.#updates = snapshot.step;
  }

  async stop(): Promise<void> {
    await this.#terminate();
    this.#threads = [];
    this.#run = undefined;
  }

  async #terminate(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #started(): ResolvedRun {
    if (this.#run === undefined) throw new TriremeError("NOT_STARTED", "call start(run) first");
    return this.#run;
  }

  /** The batch where every thread can read it, checked: kernels trust token ids. */
  #tokens({ tokens }: Batch): Int32Array {
    const { plan, model } = this.#started();
    const expected = plan.globalBatch * (plan.sequence + 1);
    if (tokens.length !== expected) {
      throw new TriremeError(
        "BATCH",
        `the batch has ${tokens.length} tokens, the plan asks for ${plan.globalBatch} × (${plan.sequence} + 1) = ${expected}`,
      );
    }
    for (const token of tokens) {
      if (token < 0 || token >= model.vocab) {
        throw new TriremeError(
          "BATCH",
          `token ${token} is outside of the vocabulary 0..${model.vocab - 1}`,
        );
      }
    }
    return shared(tokens);
  }

  #isFirstReplica(rank: number): boolean {
    const mesh = defineMesh(axes(this.#started().plan));
    return coordinate(mesh, rank)[mesh.axes.findIndex(({ name }) => name === "dp")] === 0;
  }

  /** Sends each of the threads its request, lets all begin, and waits for all. */
  #ask<K extends Value["kind"]>(
    kind: K,
    request: (rank: number) => Request,
    threads: readonly RankThread[] = this.#threads,
  ): Promise<Reply<K>[]> {
    const turn = ++this.#turn | 0;
    const replies = threads.map((thread) =>
      thread.request({ turn, request: request(thread.rank) }),
    );
    openGate(this.#gate, turn);
    return this.#collect(kind, replies);
  }

  /** Every rank's reply, or the error of the rank that failed first by its own doing. */
  async #collect<K extends Value["kind"]>(
    kind: K,
    waiting: readonly Promise<Value | Failure>[],
  ): Promise<Reply<K>[]> {
    const replies = await Promise.all(waiting);
    const failures = replies.flatMap((reply, rank) =>
      reply.kind === "failure" ? [{ ...reply, rank }] : [],
    );
    const [cause] = failures.toSorted((a, b) => Number(isEcho(a)) - Number(isEcho(b)));
    if (cause !== undefined) {
      await this.stop();
      throw new TriremeError(cause.code, cause.message);
    }
    return replies.map((reply) => {
      if (!isReply(reply, kind)) throw new Error(`asked for ${kind}, got ${reply.kind}`);
      return reply;
    });
  }
}

function isReply<K extends Value["kind"]>(reply: Value | Failure, kind: K): reply is Reply<K> {
  return reply.kind === kind;
}

/** Whether a rank only reports that a peer failed. */
function isEcho({ code }: Failure): boolean {
  return code === "ABORTED" || code === "CLOSED" || code === "STOPPED";
}

/** Packets of 64 KiB that a sender may be ahead: two whole activations, so that it does not wait. */
function slotsFor({ model, plan }: ResolvedRun, count: number): number {
  const packets = Math.ceil((2 * boundaryBytes(model, plan)) / 65_536);
  const affordable = 2 ** 30 / 65_536 / (count * count);
  return 2 ** Math.floor(Math.log2(Math.max(8, Math.min(2 * packets, affordable))));
}

function fitting(parameter: StoredParameter | undefined, name: string): StoredParameter {
  if (parameter !== undefined) return parameter;
  throw new TriremeError("CHECKPOINT", `the checkpoint lacks ${name}; is it of another model?`);
}

/** Token ids where every thread can read them. */
function shared(tokens: Int32Array): Int32Array {
  if (tokens.buffer instanceof SharedArrayBuffer) return tokens;
  const copy = new Int32Array(new SharedArrayBuffer(tokens.byteLength));
  copy.set(tokens);
  return copy;
}

/** Seconds on the clock that the ranks use too. */
function clock(): Seconds {
  return (performance.timeOrigin + performance.now()) / 1e3;
}
