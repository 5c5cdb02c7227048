/** The actions of a replayed schedule as spans of time, in the form that `@trireme/timeline` takes. */
import type { Seconds } from "@trireme/core";
import { type ActionKind, actionKinds, kindCode, printAction } from "./action.ts";
import type { Replay } from "./replay.ts";
import { type Schedule, actionAt } from "./schedule.ts";

/** One action's time on a lane of a rank. */
export interface ScheduleSpan {
  readonly rank: number;
  readonly lane: "compute" | "inter";
  readonly kind:
    | "forward"
    | "backward"
    | "input-gradient"
    | "weight-gradient"
    | "send"
    | "receive"
    | "all-gather"
    | "reduce-scatter";
  /** The action's text, `3F1`. */
  readonly action: string;
  readonly start: Seconds;
  readonly end: Seconds;
  readonly stage: number;
  /** Absent for actions on a whole stage. */
  readonly microbatch?: number;
}

const spanKinds: Readonly<Record<ActionKind, ScheduleSpan["kind"] | undefined>> = {
  F: "forward",
  I: "input-gradient",
  W: "weight-gradient",
  B: "backward",
  UNSHARD: "all-gather",
  RESHARD: undefined,
  REDUCE_GRAD: "reduce-scatter",
  SEND_F: "send",
  RECV_F: "receive",
  SEND_B: "send",
  RECV_B: "receive",
};

/** Spans of all ranks, rank after rank in order of the actions. RESHARD takes no time and has none. */
export function* spansOf(s: Schedule, r: Pick<Replay, "starts" | "ends">): Generator<ScheduleSpan> {
  for (let rank = 0; rank < s.ranks; rank++) {
    for (let i = s.offsets[rank]!; i < s.offsets[rank + 1]!; i++) {
      const kind = spanKinds[actionKinds[s.kind[i]!]!];
      if (kind === undefined) continue;
      const m = s.microbatch[i]!;
      yield {
        rank,
        lane: s.kind[i]! <= kindCode.B ? "compute" : "inter",
        kind,
        action: printAction(actionAt(s, i)),
        start: r.starts[i]!,
        end: r.ends[i]!,
        stage: s.stage[i]!,
        ...(m < 0 ? {} : { microbatch: m }),
      };
    }
  }
}
