/** The thread that stands for the ranks that are not run: it keeps their time, turn after turn. */
import { parentPort, workerData } from "node:worker_threads";
import { type Seconds, TriremeError } from "@trireme/core";
import type { Failure, Turn, Value } from "../rank/protocol.ts";
import { awaitGate } from "../rank/start-gate.ts";
import type { AssistantSeed } from "./assistant-protocol.ts";
import { PaceBoard } from "./pace-board.ts";
import { shardTurns, turnAt } from "./shard-turns.ts";
import { sketchTrace } from "./sketch.ts";
import type { TurnKind } from "./trace.ts";
import { VirtualTurn } from "./virtual-turn.ts";

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread sends nothing else
const { plans, live, trace: recorded, gate, deadline } = workerData as AssistantSeed;
const isLive: ReadonlySet<number> = new Set(live);
const now = (): Seconds => (performance.timeOrigin + performance.now()) / 1e3;

const trace = recorded ?? sketchTrace(plans, now);
const shards = trace.shards.map(shardTurns);
const mostCalls = shards
  .filter(({ rank }) => isLive.has(rank))
  .flatMap(({ turns }) => turns.map(({ calls }) => calls.length))
  .reduce((a, b) => Math.max(a, b), 0);
const board = PaceBoard.create(live.length, mostCalls);
/** Calls of each rank that is run, in turns that are over. */
const before: number[] = live.map(() => 0);
let turns = 0;

function play(request: TurnKind): void {
  const index = turns++;
  const ranks = shards.map((shard) => ({
    shard,
    turn: turnAt(shard, index, request, recorded === undefined),
  }));
  const ends = live.map((rank, place) => before[place]! + ranks[rank]!.turn.calls.length);
  let progress = now();
  const virtual = new VirtualTurn(ranks, isLive, progress);
  const heard = [...before];
  for (;;) {
    const bell = board.heard;
    board.check();
    const time = now();
    live.forEach((rank, place) => {
      for (const end = Math.min(board.calls(place), ends[place]!); heard[place]! < end;) {
        virtual.called(rank, heard[place]!++ - before[place]!, time);
        progress = time;
      }
    });
    const next = virtual.advance(time);
    for (const { rank, index: call } of virtual.takeReady()) {
      board.release(live.indexOf(rank), call, turns);
    }
    if (virtual.done && heard.every((calls, place) => calls === ends[place])) break;
    if (next < Infinity) progress = next;
    const left = progress + deadline - time;
    if (left <= 0) {
      throw new TriremeError(
        "DEADLINE",
        `the ranks that are run made no call for ${deadline} s: ${virtual.waiting}`,
      );
    }
    board.sleep(bell, Math.min(next - time, left));
  }
  live.forEach((_, place) => (before[place] = ends[place]!));
}

/** A failure is told to the ranks at once, so that none waits. */
function attempt(what: () => Value): Value | Failure {
  try {
    return what();
  } catch (error) {
    board.fail();
    const code = error instanceof TriremeError ? error.code : "ASSISTANT_FAILED";
    return {
      kind: "failure",
      code,
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

parentPort!.postMessage({ kind: "assistant", board: board.buffer, trace } satisfies Value);
parentPort!.on("message", ({ turn, request: { kind } }: Turn) => {
  parentPort!.postMessage(
    attempt(() => {
      if (kind !== "train" && kind !== "evaluate" && kind !== "load") {
        throw new TriremeError("EMULATED", `${kind} cannot be emulated`);
      }
      if (!awaitGate(gate, turn, deadline)) {
        throw new TriremeError("DEADLINE", `${kind} did not reach all ranks in ${deadline} s`);
      }
      play(kind);
      return { kind: "assisted" };
    }),
  );
});
