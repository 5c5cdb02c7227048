/** The beginning of a step as a picture of letters, one row a rank. */
import { formatSeconds } from "@trireme/core";
import { type Timeline, gantt, statistics } from "@trireme/timeline";
import { beginning, firstBackward, shortestPass } from "../excerpt.ts";
import type { Terminal } from "../terminal.ts";

const mostRows = 8;
/** Letters of the shortest pass, where the first backward comes soon enough to be shown. */
const lettersPerPass = 2;
/** How far the picture goes: this many times the time to the first backward. */
const pastWarmUp = 1.5;

/** What the picture shows, and the picture: as much of the step as can be told apart. */
export function picture(
  terminal: Terminal,
  timeline: Timeline,
): { readonly title: string; readonly text: string } {
  const width = Math.max(20, Math.min(terminal.columns, 120) - 6);
  const { makespan, ranks } = statistics(timeline);
  const warmUp = firstBackward(timeline) * pastWarmUp;
  const window = Math.min(
    makespan,
    Math.max(warmUp, (width / lettersPerPass) * shortestPass(timeline)),
  );
  const rows = Math.min(mostRows, ranks.length);
  const part = window < makespan ? `first ${formatSeconds(window)} of the step` : "the step";
  const some = rows < ranks.length ? `, ${rows} of ${ranks.length} ranks` : "";
  const text = gantt(beginning(timeline, mostRows, window), { width });
  const indented = text.replaceAll(/^(?=.)/gm, "  ");
  return { title: `${part}${some}`, text: indented };
}
