/** Emulation as the main thread sees it: which ranks are run, and what stands for the others. */
import { TriremeError } from "@trireme/core";
import { ranks } from "@trireme/workload";
import type { RankPlans } from "../rank/build-rank.ts";
import type { Failure, Value } from "../rank/protocol.ts";
import { RankThread } from "../rank/rank-thread.ts";
import type { Rehearsal } from "../stage/stage-rehearsal.ts";
import type { AssistantSeed } from "./assistant-protocol.ts";
import type { EmulateOptions } from "./emulate-options.ts";
import type { EmulationSeed } from "./rank-turns.ts";
import { type ShardTurns, shardTurns } from "./shard-turns.ts";
import type { Trace, TraceShard } from "./trace.ts";
import { readTrace } from "./trace-directory.ts";

/** What an emulation is started with. */
interface StartOptions extends Pick<AssistantSeed, "gate" | "deadline"> {
  readonly plans: RankPlans;
  readonly emulate: EmulateOptions;
  readonly onDeath: () => void;
}

/** What excludes each other. */
interface Asked {
  readonly record?: unknown;
  readonly emulate?: unknown;
  readonly memoryCopies?: boolean;
  readonly rehearse?: Rehearsal;
}

export class Emulation {
  readonly seed: EmulationSeed;
  /** Keeps the time of the ranks that are not run, where it is kept. */
  readonly assistant: RankThread | undefined;
  readonly #shards: readonly ShardTurns[];
  #turns = 0;

  constructor(seed: EmulationSeed, assistant: RankThread | undefined) {
    this.seed = seed;
    this.assistant = assistant;
    this.#shards = seed.trace.shards.map(shardTurns);
  }

  /** Throws `EMULATED`: for what takes all ranks. */
  refuse(what: string): never {
    const { live } = this.seed;
    throw new TriremeError(
      "EMULATED",
      `${what} needs all ranks, but only ${live.join(", ")} are run; leave emulate out`,
    );
  }

  /** A turn of all ranks is over. */
  endTurn(): void {
    this.#turns++;
  }

  /**
   * The losses of all ranks in the turn that ended last, from those of the ranks that are run and, for
   * the others, from the trace. Throws `TRACE` where it ends before the end of that turn.
   */
  lossSums(own: ReadonlyMap<number, number>): readonly number[] {
    return this.#shards.map(({ rank, turns }) => {
      const lossSum = own.get(rank) ?? turns[this.#turns - 1]?.lossSum;
      if (lossSum !== undefined) return lossSum;
      throw new TriremeError(
        "TRACE",
        `the trace ends before rank ${rank} had replied to turn ${this.#turns - 1}; record more of the run`,
      );
    });
  }
}

/** Checks what is asked for, and starts what stands for the ranks that are not run. */
export async function startEmulation(options: StartOptions): Promise<Emulation> {
  const { plans, emulate, gate, deadline, onDeath } = options;
  const live = liveRanks(emulate, ranks(plans.plan));
  const { paced = false, trace: given } = emulate;
  if (given === undefined && plans.rehearse === undefined) {
    throw new TriremeError(
      "EMULATE",
      `ranks ${live.join(", ")} compute, but nothing says what the others give; give a trace, or rehearse`,
    );
  }
  const recorded = typeof given === "string" ? readTrace(given) : given;
  if (recorded !== undefined) checkRanks(recorded, ranks(plans.plan));
  if (recorded !== undefined && !paced) {
    return new Emulation({ live, trace: recorded, carries: true, board: undefined }, undefined);
  }
  const seed: AssistantSeed = { plans, live, trace: recorded, gate, deadline };
  const module = new URL("./assistant-worker", import.meta.url);
  const assistant = new RankThread({ rank: -1, title: "the assistant", module, seed }, onDeath);
  const { board, trace } = assistantOf(await assistant.ready().reply);
  return new Emulation({ live, trace, carries: recorded !== undefined, board }, assistant);
}

function assistantOf(reply: Value | Failure): Extract<Value, { kind: "assistant" }> {
  if (reply.kind === "assistant") return reply;
  const { code, message } =
    reply.kind === "failure" ? reply : { code: "ASSISTANT_FAILED", message: reply.kind };
  throw new TriremeError(code, message);
}

/** Ascending. */
function liveRanks({ ranks: asked }: EmulateOptions, count: number): readonly number[] {
  const live = [...new Set(asked)].toSorted((a, b) => a - b);
  const wrong = live.find((rank) => !Number.isInteger(rank) || rank < 0 || rank >= count);
  if (live.length === 0 || wrong !== undefined) {
    throw new TriremeError(
      "EMULATE",
      `emulate.ranks ${live.length === 0 ? "is empty" : `has ${wrong}`}; give ranks of 0..${count - 1}`,
    );
  }
  return live;
}

function checkRanks({ shards }: Trace, count: number): void {
  if (shards.length === count) return;
  throw new TriremeError(
    "TRACE",
    `the trace is of ${shards.length} ranks, the plan has ${count}; record the run again with this plan`,
  );
}

/** Recording and emulation are of ranks that give each other nothing besides. */
export function checkRecording({ record, emulate, memoryCopies, rehearse }: Asked): void {
  const asked = record === undefined ? "emulate" : "record";
  if (record === undefined && emulate === undefined) return;
  if ((rehearse?.warmUps ?? 0) > 0) {
    throw new TriremeError(
      "EMULATE",
      `${asked} excludes warmUps of rehearse; leave one of them out`,
    );
  }
  const other = memoryCopies === true ? "memoryCopies" : "emulate";
  if (other === "emulate" && (record === undefined || emulate === undefined)) return;
  throw new TriremeError("EMULATE", `${asked} excludes ${other}; leave one of them out`);
}

/** Throws `EMULATE` for what no emulation could ask for, and would only upset the count of calls. */
export function refuseRecorded(what: string, { record }: Asked): void {
  if (record === undefined) return;
  throw new TriremeError(
    "EMULATE",
    `${what} is not recorded; ask a runtime without record, which restores a snapshot of this one`,
  );
}

/** The trace of all ranks, from theirs. Throws `TRACE` where nothing was recorded. */
export function traceOf(
  replies: readonly { readonly shard: TraceShard | undefined }[],
  seed: number,
): Trace {
  const shards = replies.flatMap(({ shard }) => shard ?? []);
  if (shards.length > 0) return { shards, seed };
  throw new TriremeError("TRACE", "nothing has been recorded; start with the option record");
}
