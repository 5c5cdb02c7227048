/** A shard, turn by turn. */
import { TriremeError } from "@trireme/core";
import type { CallEvent, TraceEvent, TraceShard, TurnKind } from "./trace.ts";
import { groupName } from "./trace.ts";

/** What a rank did for one request. */
export interface ShardTurn {
  readonly request: TurnKind;
  readonly events: readonly (CallEvent | Extract<TraceEvent, { kind: "wait" }>)[];
  /** The calls among them. */
  readonly calls: readonly CallEvent[];
  /** What it told at the end; undefined where the trace ends before. */
  readonly lossSum: number | undefined;
}

/** A group that a rank is in. */
export interface ShardGroup {
  readonly name: string;
  /** World ranks, in the order of rank of the group. */
  readonly members: readonly number[];
}

/** What a rank did, in order. */
export interface ShardTurns {
  readonly rank: number;
  readonly groups: readonly ShardGroup[];
  readonly turns: readonly ShardTurn[];
}

/** Reads a shard. Throws `TRACE` where a call comes before the first turn. */
export function shardTurns({ rank, events }: TraceShard): ShardTurns {
  const groups: ShardGroup[] = [];
  const turns: {
    request: TurnKind;
    events: ShardTurn["events"][number][];
    lossSum: ShardTurn["lossSum"];
  }[] = [];
  for (const event of events) {
    if (event.kind === "group") {
      const { members, ordinal } = event;
      groups.push({ name: groupName(members, ordinal), members });
    } else if (event.kind === "turn") {
      turns.push({ request: event.request, events: [], lossSum: undefined });
    } else {
      const turn = turns.at(-1);
      if (turn === undefined) {
        throw new TriremeError(
          "TRACE",
          `rank ${rank}: the trace has a ${event.kind} before a turn`,
        );
      }
      if (event.kind === "reply") turn.lossSum = event.lossSum;
      else turn.events.push(event);
    }
  }
  return {
    rank,
    groups,
    turns: turns.map((turn) => ({
      ...turn,
      calls: turn.events.filter((event) => event.kind === "call"),
    })),
  };
}

/**
 * The turn that comes next: the `index`-th of a recorded run; of ranks that repeat themselves, the
 * one of that kind. Throws `TRACE` where there is none, or another.
 */
export function turnAt(
  { rank, turns }: ShardTurns,
  index: number,
  request: TurnKind,
  repeats: boolean,
): ShardTurn {
  const turn = repeats ? turns.find((t) => t.request === request) : turns[index];
  if (turn?.request === request) return turn;
  throw new TriremeError(
    "TRACE",
    turn === undefined
      ? `rank ${rank}: the trace ends after ${turns.length} turns; record more of the run`
      : `rank ${rank}: turn ${index} of the trace is ${turn.request}, not ${request}; ask for what was recorded`,
  );
}
