/**
 * What a span can be and where it can run. The order of both lists is part of the record's schema:
 * columns hold positions in them, so new words are only ever added at the end.
 */
import { TriremeError, nearestName } from "@trireme/core";

/** What a rank did in a span of time. "idle" is a wait that was recorded; it never counts as busy. */
export type SpanKind =
  | "forward"
  | "backward"
  | "input-gradient"
  | "weight-gradient"
  | "recompute"
  | "send"
  | "receive"
  | "all-reduce"
  | "reduce-scatter"
  | "all-gather"
  | "all-to-all"
  | "broadcast"
  | "barrier"
  | "optimizer"
  | "load"
  | "checkpoint"
  | "evaluate"
  | "idle"
  | "other";

/**
 * The stream of a rank a span ran on: its arithmetic, communication inside the host, communication
 * between hosts, copies between memories, or the host's own threads.
 */
export type Lane = "compute" | "intra" | "inter" | "copy" | "host";

/** How a kind is counted: arithmetic, communication, anything else that keeps a rank busy, or not at all. */
export type Category = "compute" | "communication" | "other" | "idle";

/** All kinds; `Timeline.kind` holds positions in this list. */
export const spanKinds: readonly SpanKind[] = [
  "forward",
  "backward",
  "input-gradient",
  "weight-gradient",
  "recompute",
  "send",
  "receive",
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "barrier",
  "optimizer",
  "load",
  "checkpoint",
  "evaluate",
  "idle",
  "other",
];

/** All lanes; `Timeline.lane` holds positions in this list. */
export const lanes: readonly Lane[] = ["compute", "intra", "inter", "copy", "host"];

const categories: Readonly<Record<SpanKind, Category>> = {
  forward: "compute",
  backward: "compute",
  "input-gradient": "compute",
  "weight-gradient": "compute",
  recompute: "compute",
  send: "communication",
  receive: "communication",
  "all-reduce": "communication",
  "reduce-scatter": "communication",
  "all-gather": "communication",
  "all-to-all": "communication",
  broadcast: "communication",
  barrier: "communication",
  optimizer: "compute",
  load: "other",
  checkpoint: "other",
  evaluate: "compute",
  idle: "idle",
  other: "other",
};

/** How a kind is counted in statistics. */
export function categoryOf(kind: SpanKind): Category {
  return categories[kind];
}

const kindCodes = new Map<string, number>(spanKinds.map((kind, code) => [kind, code]));
const laneCodes = new Map<string, number>(lanes.map((lane, code) => [lane, code]));

/** Position of a kind in `spanKinds`; an unknown word is an error that names the nearest. */
export function kindCode(kind: SpanKind): number {
  return kindCodes.get(kind) ?? unknown("kind", kind, spanKinds);
}

/** Position of a lane in `lanes`; an unknown word is an error that names the nearest. */
export function laneCode(lane: Lane): number {
  return laneCodes.get(lane) ?? unknown("lane", lane, lanes);
}

function unknown(what: string, word: string, known: readonly string[]): never {
  const near = nearestName(word, known);
  const hint = near === undefined ? `one of ${known.join(", ")}` : `did you mean "${near}"?`;
  throw new TriremeError("SPAN", `unknown ${what} "${word}": ${hint}`);
}
