/**
 * What a schedule costs and why: the closed form of its bubble beside the replayed one, memory and
 * point-to-point volume against 1F1B. The forms are those of the papers (Narayanan et al., SC 2021,
 * §2.2; Qi et al., ICLR 2024, table 1; Qi et al., NeurIPS 2024, table 1; DeepSeek-AI, DeepSeek-V3, 2024,
 * table 2) for stages of equal cost, in times of one stage: f, i, w, b = i + w, and o for an overlapped
 * pair.
 */
import { type Bytes, type Seconds, formatPercent, formatSeconds } from "@trireme/core";
import { oneForwardOneBackward } from "./one-forward-one-backward.ts";
import { textPicture } from "./picture.ts";
import { type Cost, type Replay, type ReplayCosts, replay } from "./replay.ts";
import type { Schedule } from "./schedule.ts";

export interface Explanation {
  readonly schedule: string;
  readonly replay: Replay;
  /** The closed form and its value for the mean stage; undefined for schedules without one. */
  readonly formula: { readonly text: string; readonly bubble: Seconds } | undefined;
  /** Replayed: the longest time a rank is idle between its first and last action. */
  readonly bubbleInside: Seconds;
  /** Replayed: mean idle time of a rank. */
  readonly bubble: Seconds;
  /** Mean idle time by makespan. */
  readonly bubbleFraction: number;
  /** Most activations on a rank, by those of 1F1B on as many ranks, stages of a rank taken together. */
  readonly memoryRatio: number;
  readonly peakBytes: Bytes;
  /** Messages between ranks, by those of 1F1B. */
  readonly pointToPointRatio: number;
  readonly messages: number;
  /** The copies of the weights that the ranks hold together. */
  readonly weightCopies: number;
}

/** Replays the schedule and compares it with its closed form and with 1F1B. */
export function explain(s: Schedule, costs: ReplayCosts): Explanation {
  const r = replay(s, costs);
  const messages = messageCount(s);
  const reference = oneForwardOneBackward({ ranks: s.ranks, microbatches: s.microbatches });
  const referenceMessages = messageCount({ ...reference, forwardOnly: s.forwardOnly });
  const bubble = r.idle.reduce((a, b) => a + b, 0) / s.ranks;
  const peak = r.peak.reduce((a, b) => Math.max(a, b), 0);
  return {
    schedule: s.name,
    replay: r,
    formula: bubbleFormula(s, costs),
    bubbleInside: r.idleInside.reduce((a, b) => Math.max(a, b), 0),
    bubble,
    bubbleFraction: r.makespan === 0 ? 0 : bubble / r.makespan,
    // In a second direction a stage is as large as a whole rank's share, not a part of it.
    memoryRatio: (peak * s.directions) / s.chunks / Math.min(s.ranks, s.microbatches),
    peakBytes: r.peakBytes.reduce((a, b) => Math.max(a, b), 0),
    pointToPointRatio: referenceMessages === 0 ? 1 : messages / referenceMessages,
    messages,
    weightCopies: s.directions,
  };
}

/** An explanation as text, with the picture of the grid. */
export function printExplanation(
  s: Schedule,
  e: Explanation,
  o: { readonly width?: number } = {},
): string {
  const formula =
    e.formula === undefined
      ? "no closed form"
      : `${formatSeconds(e.formula.bubble)}, ${e.formula.text}`;
  return [
    `${e.schedule}: ${s.ranks} ranks x ${s.chunks} stages, ${s.microbatches} microbatches`,
    `makespan   ${formatSeconds(e.replay.makespan)}`,
    `bubble     ${formatSeconds(e.bubble)} (${formatPercent(e.bubbleFraction)}) replayed, ${formatSeconds(e.bubbleInside)} inside a rank; formula: ${formula}`,
    `memory     ${e.memoryRatio.toFixed(2)} x the activations of 1F1B, ${e.weightCopies} x the weights`,
    `messages   ${e.messages} (${e.pointToPointRatio.toFixed(2)} x 1F1B)`,
    textPicture(s, e.replay, o),
  ].join("\n");
}

/** Sends between different ranks in one step. */
function messageCount(
  s: Pick<Schedule, "stages" | "directions" | "stageRank" | "microbatches" | "forwardOnly">,
): number {
  const chain = s.stages / s.directions;
  let boundaries = 0;
  for (let st = 0; st + 1 < s.stages; st++) {
    if (st % chain < chain - 1 && s.stageRank[st] !== s.stageRank[st + 1]) boundaries++;
  }
  return (boundaries * s.microbatches * (s.forwardOnly ? 1 : 2)) / s.directions;
}

/** The closed form of the bubble of a named schedule. */
function bubbleFormula(s: Schedule, costs: ReplayCosts): Explanation["formula"] {
  const P = s.ranks;
  const f = mean(s, costs.forward);
  const i = mean(s, costs.inputGradient ?? 0);
  const w = mean(s, costs.weightGradient ?? 0);
  const b = costs.backward === undefined ? i + w : mean(s, costs.backward);
  const { overlapped = f + b } = costs;
  const o = typeof overlapped === "number" ? overlapped : overlapped(0, s.stages - 1);
  const of = (text: string, bubble: number): Explanation["formula"] => ({ text, bubble });
  switch (s.name) {
    case "gpipe":
    case "1f1b":
    case "deepspeed-train":
    case "interleaved":
    case "looped-bfs":
      return of("(P-1)(f+b)", (P - 1) * (f + b));
    case "zb-h1":
    case "interleaved-zero-bubble":
      return of("(P-1)(f+i-w)", Math.max(0, (P - 1) * (f + i - w)));
    case "zb-h2":
    case "zb-v":
      return of("0 for f = i = w", 0);
    case "v-half":
      return of("(P-1)(f+b)/2 for f = i = w", ((P - 1) * (f + b)) / 2);
    case "v-min":
      return of("2(P-1)(f+b)/3 + O(P) for f = i = w", (2 * (P - 1) * (f + b)) / 3);
    case "dualpipe":
      return of("(P/2-1)(o+b-3w)", Math.max(0, (P / 2 - 1) * (o + b - 3 * w)));
    case "dualpipe-v":
      return of("(P-1)(o+b-3w)", Math.max(0, (P - 1) * (o + b - 3 * w)));
    default:
      return undefined;
  }
}

function mean(s: Schedule, cost: Cost): Seconds {
  if (typeof cost === "number") return cost;
  let sum = 0;
  for (let st = 0; st < s.stages; st++) {
    for (let m = 0; m < s.microbatches; m++) sum += cost(st, m);
  }
  return sum / (s.stages * s.microbatches);
}
