/** Plays programs: into a timeline, or into any recorder. */
import type { Timeline } from "@trireme/timeline";
import type { Observed, PlayOptions, Played } from "./play-options.ts";
import { Player } from "./player.ts";
import type { Program } from "./program.ts";
import { type Recorder, TimelineRecorder, type TimelineRecorderOptions } from "./recorder.ts";

/** Room for the times of a program that is finished. */
export function observedTimes(program: Program): Observed {
  const taken = program.instructions().before[program.ranks]!;
  const messages = program.messages().from.length;
  return { taken: new Float64Array(taken), arrived: new Float64Array(messages) };
}

/**
 * Plays a program that starts at 0 and hands its spans to a recorder.
 * @throws TriremeError `DEADLOCK` with the cycle of ranks that wait for each other, or with what
 * never comes.
 */
export function playInto(program: Program, recorder: Recorder, options: PlayOptions = {}): Played {
  return new Player(program, recorder, options).run();
}

/** The timeline of a program that starts at 0; throws like `playInto`. */
export function play(
  program: Program,
  options: PlayOptions & TimelineRecorderOptions = {},
): Timeline {
  const recorder = new TimelineRecorder(program.labels, options);
  playInto(program, recorder, options);
  return recorder.finish();
}
