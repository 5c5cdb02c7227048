/** The runtime that trains for real on this machine: one thread a rank, kernels in WebAssembly. */
import { availableParallelism } from "node:os";
import { communicatorArena } from "@trireme/collectives";
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import {
  type GenerateRequest,
  type Snapshot,
  SnapshotBuffer,
  type SnapshotSize,
  type StepResult,
} from "@trireme/runtime";
import { TimelineBuilder } from "@trireme/timeline";
import { boundaryBytes, ranks } from "@trireme/workload";
import type { EmbeddedRuntime, EmbeddedRuntimeOptions } from "./embedded-options.ts";
import { batchTokens } from "./batch-tokens.ts";
import { copyPeers } from "./copy-peers.ts";
import { wholeGradients } from "./gradient-pieces.ts";
import { chooseOpenBlasCore } from "./kernels/open-blas-core.ts";
import type { RankCopies } from "./memory-copies.ts";
import type { Failure, Request, Value } from "./protocol.ts";
import { type Recovery, recover } from "./recover.ts";
import { RankThread } from "./rank-thread.ts";
import { createGate, openGate } from "./start-gate.ts";
import { SnapshotFiles } from "./snapshot-files.ts";
import { spansOf } from "./span-log.ts";
import { checkState, readState } from "./stored-state.ts";
import { checkPlan } from "./supported-plan.ts";

type Reply<K extends Value["kind"]> = Extract<Value, { kind: K }>;

/** Trains on threads of this process. */
export function embeddedRuntime(options: EmbeddedRuntimeOptions = {}): EmbeddedRuntime {
  return new Embedded(options);
}

class Embedded implements EmbeddedRuntime {
  readonly numeric: boolean;
  readonly #options: EmbeddedRuntimeOptions;
  #run: ResolvedRun | undefined;
  #threads: RankThread[] = [];
  #files = new SnapshotFiles([]);
  #copies: readonly RankCopies[] = [];
  #lost: ReadonlySet<number> = new Set();
  #updates = 0;
  #strikes: readonly number[] = [];
  readonly #gate = createGate();
  #turn = 0;

  constructor(options: EmbeddedRuntimeOptions) {
    this.#options = options;
    this.numeric = options.rehearse === undefined;
  }

  async start(run: ResolvedRun): Promise<void> {
    if (this.#run !== undefined) throw new TriremeError("STARTED", "the runtime has been started");
    const { model, plan, optimizer, seed } = run;
    checkPlan(model, plan);
    this.#run = run;
    const count = ranks(plan);
    if ((this.#options.gemm ?? "wasm") !== "wasm") chooseOpenBlasCore();
    const {
      deadline = 60,
      rehearse,
      router,
      fp8Scaling,
      corruption,
      memoryCopies,
      gemm = "wasm",
    } = this.#options;
    const common = {
      model,
      plan,
      optimizer,
      seed,
      deadline,
      rehearse,
      router,
      fp8Scaling,
      corruption,
      gemm,
      arena: communicatorArena(count, { slots: slotsFor(run, count) }),
      gate: this.#gate,
      // The main thread sleeps while ranks work; ranks that rehearse sleep, too.
      ownCore: count <= availableParallelism() || rehearse !== undefined,
      peers: memoryCopies === true && count > 1 ? copyPeers(model, plan) : undefined,
    };
    for (let rank = 0; rank < count; rank++) {
      // Peers of a thread that died would only wait for it.
      this.#threads.push(new RankThread({ ...common, rank }, () => void this.#terminate()));
    }
    const ready = await this.#await(
      "ready",
      this.#threads.map((thread) => thread.ready()),
    );
    this.#files = new SnapshotFiles(ready.map(({ file }) => file));
    this.#copies = ready.flatMap(({ copies }) => copies ?? []);
    this.#lost = new Set();
  }

  async step(input: { step: number; batch: Batch; learningRate: number }): Promise<StepResult> {
    const { step, learningRate } = input;
    const { model, plan } = this.#started();
    if (!Number.isFinite(learningRate)) {
      throw new TriremeError(
        "LEARNING_RATE",
        `learning rate ${learningRate} is not a finite number`,
      );
    }
    const batch = batchTokens(input.batch, model, plan);
    const begin = clock();
    const update = this.#updates + 1;
    const request: Request = { kind: "train", batch, update, learningRate };
    const replies = await this.#ask("train", request);
    const seconds = clock() - begin;
    this.#updates = update;
    this.#strikes = replies.map(({ strikes }) => strikes);
    const timeline = new TimelineBuilder();
    replies.forEach(({ spans }, rank) => {
      for (const span of spansOf(spans, rank, step, begin)) timeline.add(span);
    });
    const tokens = plan.globalBatch * plan.sequence;
    return {
      step,
      loss: this.numeric ? meanLoss(replies, tokens) : Number.NaN,
      tokens,
      seconds,
      gradientNorm: this.numeric ? replies[0]!.gradientNorm : Number.NaN,
      timeline: timeline.finish(),
    };
  }

  async evaluate(batch: Batch): Promise<{ loss: number; tokens: number }> {
    const { model, plan } = this.#started();
    const request: Request = { kind: "evaluate", batch: batchTokens(batch, model, plan) };
    const replies = await this.#ask("evaluate", request);
    const tokens = plan.globalBatch * plan.sequence;
    return { loss: this.numeric ? meanLoss(replies, tokens) : Number.NaN, tokens };
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
    const replies = await this.#ask("generate", request);
    return replies.find(({ tokens }) => tokens.length > 0)?.tokens ?? new Int32Array(0);
  }

  async gradients(): Promise<ReadonlyMap<string, Float32Array>> {
    const replies = await this.#ask("gradients", { kind: "gradients" });
    return wholeGradients(replies.flatMap(({ pieces }) => pieces));
  }

  async memory(): Promise<readonly Bytes[]> {
    const replies = await this.#ask("memory", { kind: "memory" });
    return replies.map(({ bytes }) => bytes);
  }

  get strikes(): readonly number[] {
    return this.#strikes;
  }

  kill(rank: number): void {
    const thread = this.#threads[rank];
    if (thread === undefined) {
      throw new TriremeError("RANK", `rank ${rank} is not in 0..${this.#threads.length - 1}`);
    }
    thread.kill();
  }

  recover(): Recovery {
    if (this.#copies.length > 0) return recover(this.#copies, this.#lost, this.#files);
    const reason = "no copies were kept; ask for memoryCopies, with two ranks or more";
    return { ok: false, reason };
  }

  /** Each rank copies its share between two requests, while this thread goes on: nothing else waits. */
  async snapshot(buffer: SnapshotBuffer = new SnapshotBuffer()): Promise<Snapshot> {
    this.#started();
    const files = this.#files.take(buffer);
    const taken = this.#ask("snapshot", { kind: "snapshot", files }).then(() => undefined);
    // Whoever waits for it is told; until then it must not count as unhandled.
    taken.catch(() => undefined);
    return { step: this.#updates, files: this.#files.withIndex(files), taken };
  }

  snapshotSizes(): readonly SnapshotSize[] {
    return this.#files.sizes;
  }

  async restore(snapshot: Snapshot): Promise<void> {
    this.#started();
    await snapshot.taken;
    const state = readState(snapshot);
    checkState(state, this.#files.tensors);
    await this.#ask("load", { kind: "load", state });
    this.#updates = snapshot.step;
  }

  async stop(): Promise<void> {
    const dead = this.#threads.flatMap(({ rank, isDead }) => (isDead ? [rank] : []));
    if (dead.length > 0) this.#lost = new Set(dead);
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

  /** Sends each thread the request, lets all begin, and waits for all. */
  #ask<K extends Value["kind"]>(kind: K, request: Request): Promise<Reply<K>[]> {
    const turn = ++this.#turn | 0;
    const replies = this.#threads.map((thread) => thread.request({ turn, request }));
    openGate(this.#gate, turn);
    return this.#await(kind, replies);
  }

  /** Every rank's reply, or the error of the rank that failed first by its own doing. */
  async #await<K extends Value["kind"]>(
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

function meanLoss(replies: readonly { readonly lossSum: number }[], tokens: number): number {
  return replies.reduce((sum, { lossSum }) => sum + lossSum, 0) / tokens;
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

/** Seconds on the clock that the ranks use too. */
function clock(): Seconds {
  return (performance.timeOrigin + performance.now()) / 1e3;
}
