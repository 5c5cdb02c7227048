/** The runtime that trains for real on this machine: one thread a rank, kernels in WebAssembly. */
import { availableParallelism } from "node:os";
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
import { ranks } from "@trireme/workload";
import type { EmbeddedRuntime, EmbeddedRuntimeOptions } from "./embedded-options.ts";
import { arenaFor } from "./rank/arena-for.ts";
import { batchTokens, checkLearningRate } from "./stage/batch-tokens.ts";
import { copyPeers } from "./state/copy-peers.ts";
import { checkText, generateOptions } from "./stage/generate-request.ts";
import { wholeGradients } from "./weights/gradient-pieces.ts";
import {
  type Emulation,
  checkRecording,
  refuseRecorded,
  startEmulation,
  traceOf,
} from "./emulation/emulation.ts";
import type { Trace } from "./emulation/trace.ts";
import { beginTrace } from "./emulation/trace-directory.ts";
import { chooseOpenBlasCore } from "./kernels/open-blas-core.ts";
import type { RankCopies } from "./state/memory-copies.ts";
import type { Request, Value } from "./rank/protocol.ts";
import { type Recovery, recover } from "./state/recover.ts";
import { type RankThread, rankThread } from "./rank/rank-thread.ts";
import { createGate, openGate } from "./rank/start-gate.ts";
import { SnapshotFiles } from "./state/snapshot-files.ts";
import { spansOf } from "./layout/span-log.ts";
import { checkRehearsal } from "./stage/stage-rehearsal.ts";
import { checkState, readState } from "./state/stored-state.ts";
import { checkBeside, checkPlan } from "./stage/supported-plan.ts";
import { type Pending, type Reply, allReplies } from "./rank/thread-replies.ts";

/** Trains on threads of this process. */
export function embeddedRuntime(options: EmbeddedRuntimeOptions = {}): EmbeddedRuntime {
  return new Embedded(options);
}

class Embedded implements EmbeddedRuntime {
  readonly numeric: boolean;
  readonly #options: EmbeddedRuntimeOptions;
  readonly #deadline: Seconds;
  #run: ResolvedRun | undefined;
  #threads: RankThread[] = [];
  #files = new SnapshotFiles([]);
  #emulation: Emulation | undefined;
  #copies: readonly RankCopies[] = [];
  #lost: ReadonlySet<number> = new Set();
  #updates = 0;
  #strikes: readonly number[] = [];
  readonly #gate = createGate();
  #turn = 0;

  constructor(options: EmbeddedRuntimeOptions) {
    this.#options = options;
    this.#deadline = options.deadline ?? 60;
    this.numeric = options.rehearse === undefined;
  }

  async start(run: ResolvedRun): Promise<void> {
    if (this.#run !== undefined) throw new TriremeError("STARTED", "the runtime has been started");
    const { model, plan, optimizer, seed, router, engine } = run;
    checkPlan(model, plan);
    checkBeside(plan, optimizer.kind, engine.fp8Scaling);
    const count = ranks(plan);
    if (engine.kernels !== "wasm") chooseOpenBlasCore();
    const { rehearse, corruption, memoryCopies, record, emulate } = this.#options;
    checkRecording(this.#options);
    if (rehearse !== undefined) checkRehearsal(rehearse);
    const [deadline, gate] = [this.#deadline, this.#gate];
    const plans = { model, plan, optimizer, seed, rehearse, router, engine, corruption };
    // Peers of a thread that died would only wait for it.
    const onDeath = (): void => void this.#terminate();
    this.#emulation =
      emulate && (await startEmulation({ plans, emulate, gate, deadline, onDeath }));
    const emulation = this.#emulation?.seed;
    const live = emulation?.live ?? Array.from({ length: count }, (_, rank) => rank);
    if (record?.directory !== undefined) beginTrace(record.directory, count, seed);
    const common = {
      ...plans,
      deadline,
      record,
      emulation,
      arena: arenaFor(run, live.length),
      gate,
      // The main thread sleeps while ranks work; ranks that rehearse sleep, too.
      ownCore: live.length <= availableParallelism() || rehearse !== undefined,
      peers: memoryCopies === true && count > 1 ? copyPeers(model, plan) : undefined,
    };
    this.#run = run;
    this.#updates = 0;
    this.#strikes = [];
    this.#copies = [];
    this.#lost = new Set();
    this.#threads = live.map((rank) => rankThread({ ...common, rank }, onDeath));
    const ready = await this.#await(
      "ready",
      this.#threads.map((thread) => thread.ready()),
    );
    const none = { size: 0, pieces: [] };
    this.#files = new SnapshotFiles(
      Array.from({ length: count }, (_, rank) => ready[live.indexOf(rank)]?.file ?? none),
    );
    this.#copies = ready.flatMap(({ copies }) => copies ?? []);
    const steps = rehearse?.warmUps ?? 0;
    if (steps > 0) await this.#ask("warm-up", { kind: "warm-up", steps });
  }

  async step(input: { step: number; batch: Batch; learningRate: number }): Promise<StepResult> {
    const { step, learningRate } = input;
    const { model, plan } = this.#started();
    checkLearningRate(learningRate);
    const batch = batchTokens(input.batch, model, plan);
    const begin = clock();
    const update = this.#updates + 1;
    const request: Request = { kind: "train", batch, update, learningRate };
    const replies = await this.#ask("train", request);
    const seconds = clock() - begin;
    this.#updates = update;
    this.#strikes = replies.map(({ strikes }) => strikes);
    const timeline = new TimelineBuilder();
    replies.forEach(({ spans }, i) => {
      for (const span of spansOf(spans, this.#threads[i]!.rank, step, begin)) timeline.add(span);
    });
    const tokens = plan.globalBatch * plan.sequence;
    return {
      step,
      loss: this.numeric ? this.#meanLoss(replies, tokens) : Number.NaN,
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
    return { loss: this.numeric ? this.#meanLoss(replies, tokens) : Number.NaN, tokens };
  }

  async generate(options: GenerateRequest): Promise<Int32Array> {
    const { model } = this.#started();
    this.#emulation?.refuse("generate");
    refuseRecorded("generate", this.#options);
    const request: Request = { kind: "generate", options: generateOptions(options, model) };
    const replies = await this.#ask("generate", request);
    return checkText(replies.find(({ tokens }) => tokens.length > 0)?.tokens ?? new Int32Array(0));
  }

  async gradients(): Promise<ReadonlyMap<string, Float32Array>> {
    const all = this.#emulation !== undefined;
    const replies = await this.#ask("gradients", { kind: "gradients", all });
    const pieces = replies.flatMap((reply) => reply.pieces);
    return wholeGradients(pieces, all ? Number.NaN : 0);
  }

  async memory(): Promise<readonly Bytes[]> {
    const replies = await this.#ask("memory", { kind: "memory" });
    return replies.map(({ bytes }) => bytes);
  }

  get strikes(): readonly number[] {
    return this.#strikes;
  }

  kill(rank: number): void {
    this.#started();
    const thread = this.#threads.find((t) => t.rank === rank);
    if (thread === undefined) {
      const all = this.#threads.map((t) => t.rank).join(", ");
      throw new TriremeError("RANK", `rank ${rank} is not one of those that are run: ${all}`);
    }
    thread.kill();
  }

  recover(): Recovery {
    if (this.#copies.length > 0) return recover(this.#copies, this.#died(), this.#files);
    const reason = "no copies were kept; ask for memoryCopies, with two ranks or more";
    return { ok: false, reason };
  }

  async trace(): Promise<Trace> {
    const { seed } = this.#started();
    return traceOf(await this.#ask("trace", { kind: "trace" }), seed);
  }

  /** Each rank copies its share between two requests, while this thread goes on: nothing else waits. */
  async snapshot(buffer: SnapshotBuffer = new SnapshotBuffer()): Promise<Snapshot> {
    this.#started();
    this.#emulation?.refuse("snapshot");
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
    checkState(state, this.#files.tensors, snapshot.step === 0 && this.#updates === 0);
    await this.#ask("load", { kind: "load", state });
    this.#updates = snapshot.step;
  }

  async stop(): Promise<void> {
    const threads = this.#threads;
    await this.#terminate();
    // Two requests that fail end the run twice; by the second time it may have been started again.
    if (this.#threads !== threads) return;
    this.#lost = this.#died();
    this.#threads = [];
    this.#emulation = undefined;
    this.#run = undefined;
  }

  /** Ranks that have died since the start. */
  #died(): ReadonlySet<number> {
    return new Set([...this.#lost, ...this.#threads.filter((t) => t.died).map((t) => t.rank)]);
  }

  async #terminate(): Promise<void> {
    const assistant = this.#emulation?.assistant;
    const threads = assistant === undefined ? this.#threads : [...this.#threads, assistant];
    await Promise.all(threads.map((thread) => thread.terminate()));
  }

  /** The mean loss, from what every rank tells; in the order of the ranks, those not run among them. */
  #meanLoss(replies: readonly { readonly lossSum: number }[], tokens: number): number {
    const own = new Map(replies.map(({ lossSum }, i) => [this.#threads[i]!.rank, lossSum]));
    const sums = this.#emulation?.lossSums(own) ?? [...own.values()];
    return sums.reduce((sum, lossSum) => sum + lossSum, 0) / tokens;
  }

  #started(): ResolvedRun {
    if (this.#run === undefined) throw new TriremeError("NOT_STARTED", "call start(run) first");
    return this.#run;
  }

  /** Sends each thread the request, lets all begin, and waits for all. */
  async #ask<K extends Value["kind"]>(kind: K, request: Request): Promise<Reply<K>[]> {
    this.#started();
    const turn = ++this.#turn | 0;
    const communicates = kind === "train" || kind === "evaluate" || kind === "load";
    const emulation = communicates ? this.#emulation : undefined;
    const ask = (thread: RankThread): Pending => thread.request({ turn, request });
    const replies = this.#threads.map(ask);
    const assisted = emulation?.assistant && ask(emulation.assistant);
    openGate(this.#gate, turn);
    const all = await this.#await(kind, replies, assisted);
    emulation?.endTurn();
    return all;
  }

  /** Every rank's reply, or the error of the rank that failed first, which ends all. */
  async #await<K extends Value["kind"]>(
    kind: K,
    waiting: readonly Pending[],
    assisted?: Pending,
  ): Promise<Reply<K>[]> {
    const giveUp = (): void => void this.#terminate();
    try {
      return await allReplies(kind, waiting, assisted, { seconds: this.#deadline, giveUp });
    } catch (error) {
      await this.stop();
      throw error;
    }
  }
}

/** Seconds on the clock that the ranks use too. */
function clock(): Seconds {
  return (performance.timeOrigin + performance.now()) / 1e3;
}
