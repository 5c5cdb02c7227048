/** A rank's communicator, as it is asked for: plain, noted down, or among ranks that are not run. */
import type { Communicator } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import { PaceBoard } from "./pace-board.ts";
import { Replay } from "./replay.ts";
import { ReplayCommunicator } from "./replay-communicator.ts";
import { shardTurns } from "./shard-turns.ts";
import type { Trace, TraceShard, TurnKind } from "./trace.ts";
import { FileSink, MemorySink } from "./trace-sink.ts";
import { TraceRecorder, TracedCommunicator } from "./traced-communicator.ts";
import type { RecordOptions } from "./emulate-options.ts";

/** What a rank that is run is told of the others. */
export interface EmulationSeed {
  /** World ranks that are run, ascending. */
  readonly live: readonly number[];
  readonly trace: Trace;
  /** Whether messages carry data. */
  readonly carries: boolean;
  /** Where it is said how far the others are; undefined where they are not waited for. */
  readonly board: SharedArrayBuffer | undefined;
}

/** What is asked of a rank's communicator. */
export interface RankTurnsOptions {
  readonly rank: number;
  /** Ranks of the plan. */
  readonly ranks: number;
  /** Among the ranks that are run. */
  readonly real: Communicator;
  readonly record: RecordOptions | undefined;
  readonly emulation: EmulationSeed | undefined;
  readonly deadline: Seconds;
  readonly now: () => Seconds;
}

export interface RankTurns {
  readonly communicator: Communicator;
  /** Before the first call of a request, and after the last. */
  begin(request: TurnKind): void;
  end(lossSum: number): void;
  /** What has been noted, if anything is. */
  shard(): TraceShard | undefined;
}

export function rankTurns(options: RankTurnsOptions): RankTurns {
  const { rank, ranks, real, record, emulation, deadline, now } = options;
  const world = Array.from({ length: ranks }, (_, r) => r);
  if (emulation !== undefined) {
    const { live, trace, carries, board } = emulation;
    const shared = board && new PaceBoard(board, live.length);
    const own = shardTurns(trace.shards[rank]!);
    const replay = new Replay({ rank, live, real, trace, carries, board: shared, deadline }, own);
    return {
      communicator: new ReplayCommunicator(replay, world),
      begin: (request) => replay.beginTurn(request),
      end: () => replay.endTurn(),
      shard: () => undefined,
    };
  }
  if (record !== undefined) {
    const { directory } = record;
    const sink = directory === undefined ? new MemorySink(rank) : new FileSink(directory, rank);
    const recorder = new TraceRecorder(sink, now, record.ranks);
    return {
      communicator: new TracedCommunicator(rank, world, recorder, real),
      begin: (request) => recorder.turn(request),
      end: (lossSum) => recorder.reply(lossSum),
      shard: () => sink.shard(),
    };
  }
  return { communicator: real, begin: () => {}, end: () => {}, shard: () => undefined };
}
