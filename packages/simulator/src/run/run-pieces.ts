/**
 * What training was at each moment of a generation: steps that were kept, steps that were lost, saves, standing still.
 */
import type { Seconds } from "@trireme/core";
import type { GenerationSpan } from "@trireme/fault-tolerance/simulation";
import type { SaveTimes } from "./checkpoint-storage.ts";

export interface Piece {
  readonly what: "training" | "lost" | "checkpoint" | "standstill";
  readonly start: Seconds;
  readonly end: Seconds;
}

/**
 * From a generation's first step until it was stopped, in order and without gaps. Saves that block
 * training for no time make no pieces.
 */
export function* pieces(
  span: GenerationSpan,
  { every, write }: Pick<SaveTimes, "every" | "write">,
): Generator<Piece> {
  const kept = span.kept - span.step + 1;
  let open: Piece | undefined;
  for (const piece of raw(span, every, write, kept)) {
    if (open !== undefined && open.what === piece.what) {
      const { what, start } = open;
      open = { what, start, end: piece.end };
    } else {
      if (open !== undefined) yield open;
      open = piece;
    }
  }
  if (open !== undefined) yield open;
}

function* raw(span: GenerationSpan, every: number, write: Seconds, kept: number): Generator<Piece> {
  const { stretches, stopped } = span;
  for (const [i, stretch] of stretches.entries()) {
    const until = Math.min(stopped, stretches[i + 1]?.from ?? Infinity);
    let { from: now, steps, saving, cycles } = stretch;
    const { stepTime } = stretch;
    if (stepTime === Infinity) {
      if (until > now) yield { what: "standstill", start: now, end: until };
      continue;
    }
    while (now < until) {
      const done = cycles * every;
      // A cycle's steps are kept or lost as a whole: what is committed are whole cycles.
      const what = done + every <= kept ? "training" : "lost";
      // Without saves to tell apart, the rest of what is kept is one piece.
      const more = write > 0 ? 0 : Math.max(0, kept - done - every);
      const end = Math.min(until, now + (every + more - steps) * stepTime);
      if (saving === 0 && end > now) yield { what, start: now, end };
      const rest = write - saving;
      const saved = saving > 0 ? Math.min(until, now + rest) : Math.min(until, end + rest);
      const begin = saving > 0 ? now : end;
      if (saved > begin) yield { what: "checkpoint", start: begin, end: saved };
      now = saved;
      cycles += 1 + Math.round(more / every);
      steps = 0;
      saving = 0;
    }
  }
}
